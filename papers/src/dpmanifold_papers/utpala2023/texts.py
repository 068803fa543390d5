"""What the experiments of Utpala, Vepakomma and Miolane (2023) show, in words. Numbers are of a full run."""

SYNTHETIC_K = """
**Setting.** 500 matrices E D E' of size k, the eigenvalues uniform in [e^-1/4, e^1/4], E of the Haar law. They lie in
the ball of radius sqrt(k)/4 about I, so one record moves the log-Euclidean mean by at most Delta = sqrt(k)/1000, and
no smaller ball holds them all. The paper repeats 10 times; here 24 data sets with 100 draws about the mean of each.

**What agrees.** Every error that was seen is the expectation of its law to within Monte Carlo error: d sigma for the
Laplace (a Gamma radius), sigma sqrt(2) Gamma((d+1)/2)/Gamma(d/2) for the Gaussian, d = k(k+1)/2. The gap does grow
with k, and the analytic calibration is better than the classical one everywhere.

**What does not.** At the smallest valid scale of the Laplace noise the gap is not "almost 10". In a ratio of the two
errors the ball, n and Delta cancel. At k = 30 and delta = 1e-6 it is exactly d/(sqrt(2 ln(1.25/delta)) E chi_d) = 4.07
for the classical calibration, whatever epsilon, and 5.4 to 5.9 for the analytic one, with Delta/epsilon for the
Laplace: on a homogeneous space the normaliser of the law does not depend on the mean, and that is enough. The paper
does not state its scale. 2 Delta/epsilon is the general rule of Reimherr and others (2021), whose mechanism it is; with
it the ratio is 8.1 (classical) and 10.9 to 11.9 (analytic), so that "almost 10" may be an honest account of that rule.
About half of the gap is then the factor 2, which this space does not need. (A ratio of squared errors is not 10 in
either case: about 17 and 30 to 35, or four times that.) For small matrices the order turns round, which the text does
not say: at k = 2 the Laplace error at Delta/epsilon is half the Gaussian's.

**Where ours is better.** Two things, at the same promise. "auto" compares both laws by what is public and takes the
Laplace at k = 2, which halves the error of the tangent Gaussian. And the draw is moved into the public ball, which
costs nothing and never increases the error: at k = 30, epsilon = 0.1 it falls from about 4.29 to 1.37.
(`private_mean` also moves such a draw towards the centre, by a rule that never adds to the mean squared error. That is
left out of these figures: the simulated mean is next to the centre by construction, which would flatter it.)

**What this setting is worth.** 1.37 is the radius of the ball. From k = 5 on, at every epsilon shown, *no* private
mean here is better than answering I without looking at the data (error 0.05 to 0.12: by construction the mean's
logarithm is about 0.021 I). 500 records are too few for matrices of this size. `dpm plan` warns in advance, from
public numbers alone, that the noise is no better than the centre for k = 5 and above at epsilon = 0.1, and for k = 20
and above at 0.4; for the sizes between it calls the answer rough.
"""

SYNTHETIC_DELTA = """
**Setting.** As before, delta from 1e-6 to 1e-9. The Laplace promise is pure and does not change.

**What agrees.** The Gaussian stays better than the Laplace at k = 30 for every delta. All errors are those of their
formulas, to within Monte Carlo error.

**How much delta matters.** "Not significantly impacted" is said of delta from 1e-7 to 1e-9. There the classical error
grows by the square root of ln(1.25e9)/ln(1.25e7), 1.13, and the analytic one, which the paper recommends, by 1.19 to
1.21: small beside the gap at k = 30, which is what the figure is about, but larger than the gap at k = 5. (From 1e-6,
the delta of the other figures, it is 1.22 and 1.33 to 1.38.)

**What does not.** The preprint supports the claim with ln(1.25/delta) going from 2.4 to 3.1 as delta goes from 1e-9 to
1e-18; it goes from 20.9 to 41.7. The later version leaves these numbers out.

**Ours** has the analytic scale and moves the draw into the ball. Where the noise is longer than the ball's radius
(1.37 at k = 30: every epsilon up to 0.3, and 0.4 from delta = 1e-8 on) delta makes no visible difference any more,
because nothing is left of the answer.
"""

SYNTHETIC_EXTRINSIC = """
**Setting.** As before, delta = 1e-6: Gaussian noise on the entries of the mean (vecd), analytic calibration, against
the tangent Gaussian. Errors are Frobenius norms, because what noise on the entries leaves need not have a logarithm.

**What agrees.** The tangent Gaussian has the smaller error everywhere, by factors from 1.16 (k = 2) to 2.04 (k = 30,
epsilon = 0.4). And the extrinsic releases do stop being covariance matrices: at epsilon = 0.1 a handful of 2400 at k
= 10, about 8 in 10 at k = 15 and all of them from k = 20 on; at epsilon = 0.4 nearly none up to k = 30. The paper
prints no counts. The reason is a calculation: symmetric noise of standard deviation s has its smallest eigenvalue
near -s sqrt(2k), and the mean's eigenvalues are near 1, so the sign is lost about where s sqrt(2k) = 1.

**What is wrong.** The extrinsic sensitivity 2(e^r - 1)/n is too small for the ball it is stated for. Let all records
but one be Expm(r uu') and the last one move from there to Expm(-r uu'): the largest eigenvalue of the mean falls from
e^r to e^(r - 2r/n), a change of 2r e^r/n to first order. That exceeds 2(e^r - 1)/n for every r > 0, by 1.19 at k = 2
and 1.83 at k = 30, where noise sold as epsilon = 0.1 keeps 0.19 at best. (The last table; a test does it with actual
means.) The column "proven" uses 2r e^r/n, which holds because Expm stretches by at most e^r in that ball; with it the
extrinsic error is larger by the same factor, and at k = 30 every single release is broken, at every epsilon. The
*simulated* matrices satisfy more than the ball says, |ln lambda| <= 1/4, and for them 2 sqrt(k)/4 e^(1/4)/n would do,
which is below the published value from k = 5 on: there the published noise protects such data, but not by the
argument given. At k = 2 it does not: multiples of I attain 0.00182, and the published value is 0.00170.

**Ours** is always SPD. Like the tangent Gaussian it works on the logarithm; "auto" takes Laplace noise at k = 2 (half
the error), and the draw is moved into the ball (at k = 30, epsilon = 0.1: about 1.42 instead of 6.06).
"""

IMAGES = """
**Setting.** Class means of 9 x 9 covariance descriptors (eta = 1e-6). MNIST and Fashion-MNIST, classes 0 to 3 (the
paper does not name its four), and PneumoniaMNIST, whose training part here is a subset (388 and 3494 images).
OCTMNIST, PathMNIST, KMNIST and CIFAR-10 are used if they are in the data folder; none was for the numbers on this
page. The paper repeats 10 times and shows curves only. Here: 20 whole releases per class and promise with refine=True,
500 draws for the others. A release's error is its log-Euclidean distance from the mean of the class, clipping
included.

**What agrees.** The tangent Gaussian in the published ball has the error of its formula (2r/n, analytic, sqrt of
chi^2), and beats the Laplace at every epsilon and delta. In absolute terms the difference between the two is larger
for smaller N and epsilon, as the paper says; their *ratio* does not depend on N at all, and with epsilon it goes only
from 2.2 (0.1) to 1.8 (0.9) at delta = 1e-5.

**What does not.** The paper calls Fashion-MNIST RGB throughout; its images are gray. (OCTMNIST and PathMNIST are
swapped in the text and right in the figure's caption: 9 x 9 descriptors for OCTMNIST, 11 x 11 for PathMNIST.) Treated
as RGB, Fashion-MNIST would have 11 x 11 descriptors, and noise about 1.34 times as long as here (radius 45.8 instead
of 41.4, dimension 66 instead of 45). Theorem 5 prints 14 and 16 where its proof has 12 and 14; |ln eta| is larger, so
the radius does not change.

**Where ours is better, at the same promise.**

- *Public ball.* A centre c I halfway in the log and a bound on the trace give radius 20.1 instead of 41.4: about
  0.485 of the noise, for nothing. Where the noise is long beside the ball (388 images, epsilon up to 0.3, or 0.5 with
  the two smaller deltas) the draw is moved towards the centre, by a rule that never adds to the mean squared error,
  and into the ball: at (0.1, 1e-5) the error there is about 0.24 of theirs.
- *Refined.* A fifth of the promise finds a smaller ball first. At (0.5, 1e-5) the error is about 0.066 of theirs on
  MNIST and 0.102 on Fashion-MNIST. The released radius is then about 2.2 to 3.8; it aims at holding 99 % of the
  images, and what clipping the others does is in the error. At (0.1, 1e-9) and 6000 images the ball's centre is
  expected to be 9 off (1.3 at (0.5, 1e-5)), and it gains less there.
- It is not always done. Where public numbers say that a smaller ball cannot be counted on, nothing is spent on a
  search, and the release is that in the public ball, which both columns then show up to Monte Carlo error. With 388
  images that is so at every promise here: at (0.3, 1e-5) noisy counts may be off by 205 of them, and at (0.9, 1e-5)
  the centre would be 11.6 off in a ball of radius 20. With 3494 it is so at epsilon = 0.1 and delta = 1e-7 and 1e-9.
  The plan says in advance whether a search will be made; that is never decided by looking at such a table of one's
  own data.
"""

TIMING = """
**Setting.** One draw of the noise of a private mean, k from 2 to 30, epsilon = 0.1. The paper's chain: normal steps
with the standard deviation sigma of the Laplace law, in the logarithm, with the corrected acceptance rule. Times are
processor time on a shared two-core machine, not the authors', and differ by a third between runs; only orders of
magnitude mean anything. A full chain on matrices takes minutes for all sizes, so its time per step was measured on
600 steps and multiplied by their number; the same chain on coordinates was run in full.

**What agrees.** The chain on matrices takes seconds to a minute and grows linearly with its steps: about 50 s for
50,000 steps at k = 30, where the paper has 73 s. (Ours checks its points at every step, which at small k is most of
its time.) Started at a random matrix (geomstats' own: the paper does not say more), its noise has the expected length
after 10,000, 30,000 and 50,000 steps alike, within 3 standard errors, as the paper finds; 61 to 64 % of the steps are
accepted, and the paper reports 50 to 65 %.

**What does not.** "1.3 microseconds" for the tangent Gaussian contradicts the factors printed beside it in the
preprint: 14 s/9979, 36 s/24265 and 73 s/49521 are 1.4 to 1.5 *milli*seconds. We see 0.9 to 1 ms.

**The chain is not needed.** On this flat space the Laplace law is a uniform direction times a Gamma(d) length: an
exact draw takes 0.7 to 1 ms at k = 30, calibration included, some 50,000 to 70,000 times less than the chain on
matrices. Even the same chain written on coordinates, without a single matrix logarithm, takes about 0.5 s. The
tangent Gaussian is no faster than the exact Laplace: the paper's speed-up is that of not running a chain.

**And it can fail.** Started at the mean itself, the natural choice, a step is accepted with probability E exp(-|z|),
z standard normal in d dimensions: 8e-4 at k = 10, 2e-5 at k = 15, 6e-10 at k = 30. After 50,000 steps 18 of 60 chains
at k = 15, 56 of 60 at k = 20 and all 20 at k = 25 and 30 were still where they began, about as many as that says:
such a chain would have released the mean itself, without any noise. A random start, as in the paper, avoids that, but
nothing in the output tells the two apart.
"""

BOUND = """
**Setting.** The radius of a ball that holds the descriptor of *every* image, over the largest distance from its
centre among the images that there are.

**What does not agree.** The paper calls its bound tight in practice (a figure, no numbers). On these sets the
published radius, 41.4 about I, is 1.7 to 2.9 times the largest seen.

**Why.** Not because the bound is loose for its centre: a blank image has seven eigenvalues at eta and is 36.7 away
from I, so no ball about I can be smaller than 0.89 of the published one. It is the centre. Eigenvalues range over
[1e-6, 3]; in the log that is far from symmetric about 1, so most of a ball about I is empty.

**Ours.** About c I with c = 4.8e-4 the radius is 20.1, 0.485 of the published, and 1.3 to 1.6 times the largest seen
(1.12 for a blank image: little is left to gain without looking at data). A larger eta shrinks it further, to 13.2 at
1e-4 and 9.8 at 1e-3, at the price of a descriptor that sees less. What remains is that real images are nothing like
blank: that part only a released ball wins, see the images above.
"""
