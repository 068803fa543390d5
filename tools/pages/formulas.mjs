// Formulas to HTML: a JSON list of {tex, display} comes in, a JSON list of HTML goes out. A wrong formula ends the build.
import katex from "katex";

let input = "";
for await (const piece of process.stdin) input += piece;
const macros = { "\\dist": "\\rho", "\\grad": "\\operatorname{grad}", "\\tr": "\\operatorname{tr}" };
const rendered = JSON.parse(input).map(({ tex, display }) => {
  try {
    return katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "error", macros: { ...macros } });
  } catch (problem) {
    console.error(`${tex}\n${problem.message}`);
    process.exit(1);
  }
});
process.stdout.write(JSON.stringify(rendered));
