"""The pages that people see. Every one asks a desk, and says nothing that the desk did not."""

from starlette.routing import Route

from dpmanifold.service.web.pages import account, browsing, overseeing, planning

ROUTES = [
    Route("/account", account.account, methods=["GET"]),
    Route("/account/tokens", account.make_token, methods=["POST"]),
    Route("/account/tokens/{token}/revoke", account.revoke_token, methods=["POST"]),
    Route("/account/password", account.change_password, methods=["POST"]),
    Route("/login", account.login, methods=["GET"]),
    Route("/login", account.enter, methods=["POST"]),
    Route("/logout", account.leave, methods=["POST"]),
    Route("/", browsing.datasets, methods=["GET"]),
    Route("/data/{population}/{name}", browsing.dataset, methods=["GET"]),
    Route("/history/{population}", browsing.history, methods=["GET"]),
    Route("/releases", browsing.releases, methods=["GET"]),
    Route("/releases/{release}", browsing.release, methods=["GET"]),
    Route("/releases/{release}/state.json", browsing.state, methods=["GET"]),
    Route("/releases/{release}/picture.png", browsing.image, methods=["GET"]),
    Route("/releases/{release}/report.html", browsing.report, methods=["GET"]),
    Route("/releases/{release}/result.json", browsing.result, methods=["GET"]),
    Route("/releases/{release}/value.npy", browsing.value, methods=["GET"]),
    Route("/plan/{population}/{name}", planning.plan, methods=["GET"]),
    Route("/plan/{population}/{name}/curve.json", planning.curve, methods=["GET"]),
    Route("/confirm", planning.confirm, methods=["GET"]),
    Route("/ask", planning.ask, methods=["POST"]),
    Route("/steward", overseeing.steward, methods=["GET"]),
    Route("/steward/populations", overseeing.make_population, methods=["POST"]),
    Route("/steward/populations/{population}", overseeing.population, methods=["GET"]),
    Route("/steward/populations/{population}/cap", overseeing.raise_cap, methods=["POST"]),
    Route("/steward/populations/{population}/grants", overseeing.grant, methods=["POST"]),
    Route("/steward/populations/{population}/terms/{name}", overseeing.terms, methods=["POST"]),
    Route("/steward/populations/{population}/resume", overseeing.resume, methods=["POST"]),
    Route("/steward/approvals/{release}", overseeing.decide, methods=["POST"]),
    Route("/auditor", overseeing.auditor, methods=["GET"]),
    Route("/auditor/events", overseeing.events, methods=["GET"]),
    Route("/auditor/export", overseeing.export, methods=["GET"]),
    Route("/steward/register", overseeing.register, methods=["GET"]),
    Route("/steward/registrations", overseeing.send, methods=["POST"]),
    Route("/steward/registrations/{registration}", overseeing.registration, methods=["GET"]),
    Route("/steward/registrations/{registration}/state.json", overseeing.registration_state, methods=["GET"]),
]
"""All routes of pages."""
