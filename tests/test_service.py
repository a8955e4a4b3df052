"""Claims about the service: its API, who may use it, and what it never loses."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")
pytest.importorskip("httpx2", reason="its test client needs httpx2")

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from toys import toy_policy

from sensortree import Sensor, SensorTreeClassifier, save
from sensortree.cells.words import ColumnFormat
from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.persistence.files import render
from sensortree.persistence.model import read_model, write_model
from sensortree.persistence.saved import SavedModel
from sensortree.policy.about import About
from sensortree.service import database, ledger
from sensortree.service.app import is_loopback, make_app, serve
from sensortree.service.gate import Bucket, Limits
from sensortree.service.models import Model, Models, open_models
from sensortree.service.tokens import Caller, Tokens, add_entry, digest_of, read_tokens

TOKENS = {
    name: Caller(name, tenant, frozenset(scopes.split()))
    for name, tenant, scopes in [
        ("alice", "a", "read ask admin"),
        ("anton", "a", "read ask"),
        ("berta", "b", "read ask"),
        ("reader", "a", "read"),
        ("asker", "a", "ask"),
    ]
}


def model(name="toy", **parameters):
    policy = toy_policy(**parameters)
    about = About(unit="EUR", target="sick", rows=10)
    return Model(name, SavedModel(replace(policy, about=about), None, {}))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.sqlite3"


def client_of(path, *models, tokens=False, **more):
    known = Tokens({digest_of(name): caller for name, caller in TOKENS.items()})
    app = make_app(
        Models(models or [model()]), path, tokens=known if tokens else None, **more
    )
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture
def client(path):
    with client_of(path) as client:
        yield client


def bearer(name):
    return {"Authorization": f"Bearer {name}"}


def begin(client, **more):
    found = client.post("/v1/sessions", json={"model": "toy", **more})
    assert found.status_code == 201, found.text
    return found.json()


def act(client, session, what, **more):
    return client.post(f"/v1/sessions/{session['id']}/{what}", json=more)


def refused(response, status, words):
    """Check that a response is a refusal in the one shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert set(said) == {"type", "title", "status", "detail", "request"}
    assert said["status"] == status
    assert said["request"] == response.headers["x-request-id"]
    assert words in said["detail"]
    return True


# without sessions -------------------------------------------------------------------------


def test_a_step_is_what_the_policy_says(client):
    # Who has a > 0 buys b; with both the answer is "yes" with probability 0.8.
    said = client.post("/v1/models/toy/step", json={}).json()
    assert said["decision"] is None
    assert (said["step"]["sensor"], said["step"]["cost"]) == ("a", 1.0)
    known = {"a": {"A": 1.0}}
    said = client.post("/v1/models/toy/step", json={"known": known}).json()
    assert (said["step"]["sensor"], said["step"]["spent"]) == ("b", 1.0)
    assert "changes the answer" in said["step"]["why"]["text"]
    known = {"a": [1.0], "b": [0]}
    said = client.post("/v1/models/toy/step", json={"known": known}).json()
    assert said["step"]["action"] == "stop"
    assert said["decision"] == {
        "label": "yes",
        "proba": {"no": 0.2, "yes": 0.8},
        "spent": 4.0,
        "referred": False,
    }


def test_answers_are_those_of_the_policy_row_by_row(client):
    X = np.random.default_rng(0).normal(size=(20, 2))
    rows = [{"values": {"A": a, "B": b}} for a, b in X.tolist()]
    found = client.post("/v1/models/toy/answers", json={"rows": rows}).json()["answers"]
    expected = model().saved
    assert [one["label"] for one in found] == expected.predict(X).tolist()
    assert [one["spent"] for one in found] == expected.acquisition_cost(X).tolist()


def test_a_column_that_is_not_there_cannot_be_had(client):
    rows = [{"values": {"A": 1.0}}, {"values": {"A": -1.0}}]
    found = client.post("/v1/models/toy/answers", json={"rows": rows}).json()["answers"]
    assert [one["unavailable"] for one in found] == [{"b": None}, {}]


def test_an_explanation_names_every_node(client):
    found = client.post(
        "/v1/models/toy/explanation", json={"values": {"A": -2.0}}
    ).json()
    assert (found["answer"], found["spent"]) == ("no", 1.0)
    assert len(found["nodes"]) == 1


def test_a_card_says_what_is_asked_and_at_what_price(client):
    card = client.get("/v1/models/toy").json()
    assert card["target"] == "sick"
    assert [s["cost"] for s in card["sensors"]] == [1.0, 3.0]
    assert client.get("/v1/models").json() == {"models": [card]}
    short = client.get(f"/v1/models/toy@{card['version'][:8]}")
    assert short.json() == card


BAD_VALUES = {
    "unknown sensor": ({"known": {"z": [1]}}, 422, "'z' is not a sensor"),
    "too many values": ({"known": {"a": [1, 2]}}, 422, "was told 2 values"),
    "text for a number": ({"known": {"a": ["x"]}}, 422, "'a'"),
    "a value that is missing": ({"known": {"a": [None]}}, 422, "a"),
    "unknown price": ({"prices": {"z": 1}}, 422, "'z' is not a sensor"),
    "unknown key": ({"knwon": {}}, 400, "body.knwon"),
    "a table": ({"known": {"a": [[1]]}}, 400, "body.known"),
    "negative limit": ({"limit": -1}, 400, "body.limit"),
    "no object": ([], 400, "body"),
}


@pytest.mark.parametrize("how", BAD_VALUES)
def test_what_cannot_be_used_is_refused_in_one_shape(client, how):
    body, status, words = BAD_VALUES[how]
    refused(client.post("/v1/models/toy/step", json=body), status, words)


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, '{"known": {"a": [1e999]}}', "\xff"]
)
def test_a_body_that_is_no_json_is_refused(client, text):
    response = client.post(
        "/v1/models/toy/step",
        content=text.encode("latin-1"),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code in (400, 422)
    refused(response, response.status_code, "")


def test_text_that_is_no_unicode_is_refused(client):
    session = begin(client)
    content = '{"sensor": "b", "because": "\\ud800"}'
    found = client.post(
        f"/v1/sessions/{session['id']}/unavailable",
        content=content,
        headers={"Content-Type": "application/json"},
    )
    refused(found, 400, "body.because")


# sessions ---------------------------------------------------------------------------------


def test_a_session_asks_until_it_decides(client):
    session = begin(client)
    assert (session["revision"], session["step"]["sensor"]) == (1, "a")
    session = act(client, session, "tell", sensor="a", values=[1.0], revision=1).json()
    assert (session["revision"], session["step"]["sensor"]) == (2, "b")
    session = act(client, session, "tell", sensor="b", values={"B": 5}).json()
    assert session["decided"]
    assert session["decision"]["label"] == "yes"
    assert session["decision"]["acquired"] == ["a", "b"]
    assert session["told"] == {"a": [1.0], "b": [5]}
    assert client.get(f"/v1/sessions/{session['id']}").json() == session


def test_a_sensor_that_cannot_be_had_is_gone_round(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[1.0])
    found = act(client, session, "unavailable", sensor="b", because="broken").json()
    assert found["decision"]["unavailable"] == {"b": "broken"}


def test_other_values_are_a_correction_or_refused(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[1.0])
    refused(
        act(client, session, "tell", sensor="a", values=[-1.0]), 409, "other values"
    )
    found = act(client, session, "correct", sensor="a", values=[-1.0]).json()
    assert (found["decision"]["label"], found["revision"]) == ("no", 3)


def test_what_is_told_twice_changes_nothing(client):
    session = begin(client)
    first = act(client, session, "tell", sensor="a", values=[1.0]).json()
    assert act(client, session, "tell", sensor="a", values=[1.0]).json() == first


def test_a_stale_revision_is_refused(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[1.0], revision=1)
    late = act(client, session, "unavailable", sensor="b", revision=1)
    refused(late, 409, "at revision 2, not 1")
    refused(
        client.delete(f"/v1/sessions/{session['id']}", params={"revision": 1}),
        409,
        "at revision 2, not 1",
    )


def test_a_refused_change_leaves_the_session_and_the_ledger_alone(client):
    session = begin(client)
    before = client.get("/v1/ledger").json()
    refused(act(client, session, "tell", sensor="a", values=["x"]), 422, "'a'")
    assert client.get("/v1/ledger").json() == before
    assert client.get(f"/v1/sessions/{session['id']}").json() == session


def test_a_deleted_session_is_gone_and_its_records_stay(client, path):
    session = begin(client)
    address = f"/v1/sessions/{session['id']}"
    assert client.delete(address).status_code == 204
    refused(client.get(address), 404, "no such session")
    refused(client.delete(address), 404, "no such session")
    connection = database.open_to_read(path)
    kinds = [record.kind for record in ledger.records(connection)]
    connection.close()
    assert kinds == ["created", "asked", "deleted"]


def test_sessions_are_listed_a_page_at_a_time(client):
    made = [begin(client)["id"] for _ in range(5)]
    found, after = [], None
    for _ in range(3):
        parameters = {"limit": 2, **({"after": after} if after else {})}
        page = client.get("/v1/sessions", params=parameters).json()
        found += [session["id"] for session in page["sessions"]]
        after = page["next"]
    assert (found, after) == (made, None)


def test_a_session_begun_in_python_goes_on_in_the_service(client):
    own = model().policy.session(limit=2.0)
    own.tell("a", [1.0])
    body = {"model": "toy", "state": own.to_dict()}
    found = client.post("/v1/resume", json=body).json()
    assert found["decision"]["stopped_because"] == "limit"
    state = client.get(f"/v1/sessions/{found['id']}/state").json()
    assert model().policy.resume(state).decision().label == found["decision"]["label"]
    body["state"] = {"format": "a recipe"}
    refused(client.post("/v1/resume", json=body), 422, "not that of a session")


def test_the_ledger_tells_a_session_from_beginning_to_end(client):
    session = begin(client, limit=9)
    act(client, session, "tell", sensor="a", values=[1.0])
    last = act(client, session, "tell", sensor="b", values=[2.0]).json()
    found = client.get(f"/v1/sessions/{session['id']}/ledger").json()["records"]
    assert [(r["kind"], r["body"].get("sensor")) for r in found] == [
        ("created", None),
        ("asked", "a"),
        ("told", "a"),
        ("asked", "b"),
        ("told", "b"),
        ("decided", None),
    ]
    assert found[2]["body"]["values"] == [1.0]
    assert found[-1]["body"]["label"] == "yes"
    assert last["receipt"] == f"{found[-1]['number']}:{found[-1]['hash']}"
    assert client.get("/v1/ledger").json()["receipt"] == last["receipt"]


def test_why_a_session_goes_on_is_a_sentence_and_all_of_it_on_request(client):
    session = begin(client)
    address = f"/v1/sessions/{session['id']}/why"
    assert session["step"]["why"] is None
    assert client.get(address).json() == {"why": None}
    found = act(client, session, "tell", sensor="a", values=[1.0]).json()
    why = client.get(address).json()["why"]
    assert found["step"]["why"] == why["text"]
    assert why["contributions"][0]["name"] == "A"


def test_a_correction_is_written_with_the_values_that_hold(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[1.0])
    act(client, session, "correct", sensor="a", values=[-1.0])
    found = client.get(f"/v1/sessions/{session['id']}/ledger").json()["records"]
    (corrected,) = [r["body"] for r in found if r["body"].get("correct")]
    assert corrected == {"sensor": "a", "values": [-1.0], "correct": True}


def test_a_session_stays_with_its_version_of_the_model(path):
    old, new = model(), model(stop_loss=0.4)
    with client_of(path, old) as client:
        session = begin(client)
    with client_of(path, old, new) as client:
        found = act(client, session, "tell", sensor="a", values=[1.0]).json()
        assert found["version"] == old.version
        assert begin(client)["version"] == new.version
        named = begin(client, model=f"toy@{old.version}")
        assert named["version"] == old.version
    with client_of(path, new) as client:
        late = act(client, session, "tell", sensor="b", values=[1.0])
        refused(late, 409, "which this service does not have; serve that file, too")


# once -------------------------------------------------------------------------------------


def test_the_same_key_gives_the_same_answer_and_one_change(client):
    key = {"Idempotency-Key": "k1"}
    first = client.post("/v1/sessions", json={"model": "toy"}, headers=key)
    again = client.post("/v1/sessions", json={"model": "toy"}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert len(client.get("/v1/sessions").json()["sessions"]) == 1


def test_a_key_outlives_a_restart(path):
    key = {"Idempotency-Key": "k1"}
    with client_of(path) as client:
        session = begin(client)
        address = f"/v1/sessions/{session['id']}/tell"
        body = {"sensor": "a", "values": [1.0], "revision": 1}
        first = client.post(address, json=body, headers=key)
    with client_of(path) as client:
        again = client.post(address, json=body, headers=key)
        assert again.json() == first.json()
        refused(client.post(address, json=body), 409, "at revision 2, not 1")


def test_a_key_stands_for_one_request(client):
    key = {"Idempotency-Key": "k1"}
    client.post("/v1/sessions", json={"model": "toy"}, headers=key)
    other = client.post("/v1/sessions", json={"model": "toy", "limit": 2}, headers=key)
    refused(other, 422, "was used with another request")


def test_a_refused_request_does_not_use_up_its_key(client):
    key, session = {"Idempotency-Key": "k1"}, begin(client)
    address = f"/v1/sessions/{session['id']}/tell"
    bad = client.post(address, json={"sensor": "a", "values": ["x"]}, headers=key)
    assert bad.status_code == 422
    good = client.post(address, json={"sensor": "a", "values": [1]}, headers=key)
    assert good.status_code == 200


def test_a_key_belongs_to_its_tenant(path):
    with client_of(path, tokens=True) as client:
        ids = {
            client.post(
                "/v1/sessions",
                json={"model": "toy"},
                headers={**bearer(name), "Idempotency-Key": "k1"},
            ).json()["id"]
            for name in ("alice", "anton", "berta")
        }
    assert len(ids) == 2  # alice and anton are of one tenant


# who may ask ------------------------------------------------------------------------------


def operations():
    """Every operation of the API, with an address that could be one."""
    with_ids = {"model": "toy", "session": "x" * 22}
    with (
        tempfile.TemporaryDirectory() as folder,
        client_of(Path(folder) / "sessions.sqlite3") as client,
    ):
        document = client.get("/openapi.json").json()
    return [
        (method.upper(), path.format(**with_ids), operation["security"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


OPERATIONS = operations()
SECURED = [(method, path) for method, path, security in OPERATIONS if security]


def test_only_the_health_of_the_service_is_for_everybody():
    assert {path for _, path, security in OPERATIONS if not security} == {
        "/healthz",
        "/readyz",
    }
    assert len(SECURED) >= 20


WRONG = {
    "wrong": bearer("mallory"),
    "empty": {"Authorization": "Bearer "},
    "no kind": {"Authorization": "alice"},
    "its hash": bearer(digest_of("alice")),
    "longer": bearer("alice2"),
    "shorter": bearer("alic"),
    "basic": {"Authorization": "Basic bWFsbG9yeTptYWxsb3J5"},
    "no base64": {"Authorization": "Basic ?"},
    "letters beyond": {"Authorization": "Bearer \xe4"},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("guarded") / "sessions.sqlite3"
    with client_of(path, tokens=True) as client:
        yield client


@pytest.mark.parametrize(("method", "address"), SECURED)
def test_without_a_token_no_operation_answers(guarded, method, address):
    refused(guarded.request(method, address), 401, "a token is needed")


@pytest.mark.parametrize("how", WRONG)
def test_with_a_wrong_token_nobody_comes_in(guarded, how):
    headers = {k: v.encode("latin-1") for k, v in WRONG[how].items()}
    for address in ("/v1/models", "/watch"):  # a page, to which browsers send passwords
        response = guarded.get(address, headers=headers)
        refused(response, 401, "token")
        assert "www-authenticate" in response.headers


def test_a_path_that_is_nothing_says_nothing_to_strangers(guarded):
    refused(guarded.get("/v1/secrets"), 401, "a token is needed")
    refused(guarded.get("/v1/secrets", headers=bearer("alice")), 404, "nothing here")


SCOPES = {
    "GET /v1/models": "read",
    "GET /v1/sessions": "read",
    "GET /": "read",
    "GET /openapi.json": "read",
    "POST /v1/models/toy/step": "ask",
    "POST /v1/sessions": "ask",
    "GET /metrics": "admin",
    "GET /watch": "admin",
    "GET /v1/ledger": "admin",
    "GET /v1/models/toy/watch": "admin",
}


@pytest.mark.parametrize("what", SCOPES)
def test_a_token_does_what_its_scopes_say(guarded, what):
    method, address = what.split()
    body = {"model": "toy"} if address == "/v1/sessions" else {}
    for name, caller in TOKENS.items():
        response = guarded.request(
            method,
            address,
            headers=bearer(name),
            **({} if method == "GET" else {"json": body}),
        )
        if SCOPES[what] in caller.scopes:
            assert response.status_code in (200, 201), (name, response.text)
        else:
            refused(response, 403, f"no scope '{SCOPES[what]}'")


def test_a_browser_gives_the_token_as_its_password_and_only_for_pages(guarded):
    assert guarded.get("/", auth=("any", "alice")).status_code == 200
    assert guarded.get("/watch", auth=("any", "alice")).status_code == 200
    refused(guarded.get("/v1/models", auth=("any", "alice")), 401, "token")
    asked = guarded.post("/v1/sessions", json={"model": "toy"}, auth=("any", "alice"))
    refused(asked, 401, "token")


def test_a_session_of_another_tenant_is_not_there(guarded):
    name = "berta"
    made = guarded.post("/v1/sessions", json={"model": "toy"}, headers=bearer("alice"))
    id = made.json()["id"]
    for what in ("", "/state", "/ledger"):
        found = guarded.get(f"/v1/sessions/{id}{what}", headers=bearer(name))
        refused(found, 404, "no such session")
    for what, body in {
        "tell": {"sensor": "a", "values": [1]},
        "correct": {"sensor": "a", "values": [1]},
        "unavailable": {"sensor": "a"},
    }.items():
        address = f"/v1/sessions/{id}/{what}"
        found = guarded.post(address, json=body, headers=bearer(name))
        refused(found, 404, "no such session")
    refused(
        guarded.delete(f"/v1/sessions/{id}", headers=bearer(name)),
        404,
        "no such session",
    )
    refused(
        guarded.get("/v1/sessions", params={"after": id}, headers=bearer(name)),
        404,
        "no session to go on after",
    )
    theirs = guarded.get("/v1/sessions", headers=bearer(name)).json()["sessions"]
    assert id not in {session["id"] for session in theirs}
    mate = guarded.get(f"/v1/sessions/{id}", headers=bearer("anton"))
    assert mate.json() == made.json()


PATHS = [
    "/v1/models/../../etc/passwd",
    "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/v1/sessions/%00",
    "/v1/sessions/..%2f..",
    "/v1/sessions/" + "x" * 5_000,
    "/v1/sessions/' OR 1=1 --",
    "/models/..%5c..%5cwindows",
    "//etc/passwd",
    "/v1/models/toy%00",
    "/v1/models/\N{SNOWMAN}",
]


@pytest.mark.parametrize("path", PATHS)
def test_tricks_with_paths_lead_nowhere(guarded, path):
    response = guarded.get(path, headers=bearer("alice"))
    assert response.status_code in (400, 404)
    refused(response, response.status_code, "")


def test_without_tokens_only_local_pages_may_ask(client):
    rebinding = client.get("/v1/models", headers={"Host": "evil.example"})
    refused(rebinding, 403, "answers to localhost")
    other = client.get("/v1/models", headers={"Origin": "http://evil.example"})
    refused(other, 403, "no other site may ask")
    own = client.get("/v1/models", headers={"Origin": "http://127.0.0.1"})
    assert own.status_code == 200


def test_it_listens_elsewhere_only_with_tokens(path):
    with pytest.raises(ParameterError, match="others can reach the service"):
        serve(Models([model()]), path, "0.0.0.0", 1, Tokens({}), Limits(), False)
    assert not path.exists()


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host, is_local):
    assert is_loopback(host) == is_local


# tokens -----------------------------------------------------------------------------------


def test_a_token_file_holds_hashes_and_is_its_owners(tmp_path):
    file = tmp_path / "tokens.toml"
    add_entry(file, "clinic", "a", ("read", "ask"), "a-very-secret-token")
    add_entry(file, "boss", "b", ("admin",), "another-secret-token")
    assert "secret" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    found = read_tokens(file, {})
    assert found.find("a-very-secret-token") == Caller(
        "clinic", "a", frozenset({"read", "ask"})
    )
    assert found.find("a-very-secret-tokem") is None
    with pytest.raises(ParameterError, match="has a token 'boss' already"):
        add_entry(file, "boss", "b", ("admin",), "x")


def test_the_environment_may_hold_one_token():
    found = read_tokens(None, {"SENSORTREE_TOKEN": "x" * 32})
    assert found.find("x" * 32).scopes == {"read", "ask", "admin"}
    with pytest.raises(ParameterError, match="has 5 characters"):
        read_tokens(None, {"SENSORTREE_TOKEN": "short"})
    assert len(read_tokens(None, {})) == 0


BAD_FILES = {
    "": "must hold tables",
    "tokens = 3": "must hold tables",
    "x =": "is no TOML",
    '[tokens.a]\ntenant="t"': "token 'a' must have scopes, sha256, tenant",
    '[tokens.a]\ntenant=""\nscopes=["ask"]\nsha256="0"': "tenant must be a text",
    '[tokens.a]\ntenant="t"\nscopes=["all"]\nsha256="0"': "scopes must list some of",
    '[tokens.a]\ntenant="t"\nscopes=["ask"]\nsha256="secret"': "64 hexadecimal digits",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_token_file_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "tokens.toml").write_text(text)
    with pytest.raises(ParameterError, match=BAD_FILES[text]):
        read_tokens(tmp_path / "tokens.toml", {})


# limits -----------------------------------------------------------------------------------


def test_a_body_of_ten_megabytes_is_refused(client):
    body = b'{"known": {"a": [' + b" " * 10_000_000 + b"1]}}"
    refused(client.post("/v1/models/toy/step", content=body), 413, "larger than")

    def in_parts():
        yield from (body[at : at + 65_536] for at in range(0, len(body), 65_536))

    refused(client.post("/v1/models/toy/step", content=in_parts()), 413, "larger than")


def test_strangers_are_refused_before_the_size_of_their_body_matters(guarded):
    body = b"x" * 10_000_000
    refused(guarded.post("/v1/sessions", content=body), 401, "token")


def test_a_tenant_has_only_so_many_sessions(path):
    with client_of(path, limits=Limits(sessions=2)) as client:
        first = begin(client)
        begin(client)
        refused(
            client.post("/v1/sessions", json={"model": "toy"}), 429, "as many as may be"
        )
        client.delete(f"/v1/sessions/{first['id']}")
        begin(client)


def test_a_batch_has_only_so_many_rows(path):
    with client_of(path, limits=Limits(rows=2)) as client:
        rows = [{"values": {"A": -1.0}}] * 3
        found = client.post("/v1/models/toy/answers", json={"rows": rows})
        refused(found, 422, "more than 2 rows")


def test_who_asks_too_often_has_to_wait_and_no_other(path):
    slow = Limits(rate=0.001, burst=3)
    with client_of(path, tokens=True, limits=slow) as client:
        for _ in range(3):
            assert client.get("/v1/models", headers=bearer("alice")).status_code == 200
        late = client.get("/v1/models", headers=bearer("alice"))
        refused(late, 429, "wait a little")
        assert int(late.headers["retry-after"]) >= 1
        assert client.get("/v1/models", headers=bearer("berta")).status_code == 200


def test_a_bucket_fills_at_its_rate():
    time = [0.0]
    bucket = Bucket(2.0, 3, lambda: time[0])
    assert [bucket.wait() for _ in range(3)] == [0.0] * 3
    assert bucket.wait() == 0.5
    time[0] = 0.5
    assert bucket.wait() == 0.0
    time[0] = 100.0
    assert [bucket.wait() == 0 for _ in range(4)] == [True] * 3 + [False]


# logs, health, metrics --------------------------------------------------------------------


def test_logs_hold_neither_values_nor_tokens_nor_sessions(path, caplog):
    caplog.set_level(logging.DEBUG)
    with client_of(path, tokens=True) as client:
        headers = bearer("alice")
        made = client.post(
            "/v1/sessions",
            json={"model": "toy", "known": {"a": [73219.5]}},
            headers=headers,
        )
        client.post(
            "/v1/models/toy/step", json={"known": {"a": ["Xanthippe"]}}, headers=headers
        )
        client.get("/", headers=bearer("mallorys-token"))
    ours = [r.getMessage() for r in caplog.records if r.name == "sensortree.service"]
    said = "\n".join(ours)
    assert "POST /v1/sessions 201" in said
    assert "alice" in said
    for secret in ("73219", "Xanthippe", made.json()["id"], "mallorys"):
        assert secret not in caplog.text


def test_values_are_logged_for_who_asks_for_it(path, caplog):
    caplog.set_level(logging.INFO)
    with client_of(path, log_values=True) as client:
        client.post("/v1/models/toy/step", json={"known": {"a": [73219.5]}})
    assert "73219.5" in caplog.text


def test_a_fault_of_ours_is_a_problem_without_details(path, caplog, monkeypatch):
    with client_of(path) as client:

        def broken(*args):
            raise RuntimeError("value 73219")

        monkeypatch.setattr("sensortree.service.sessions.listed", broken)
        refused(client.get("/v1/sessions"), 500, "our fault")
    assert "RuntimeError" in caplog.text
    assert "73219" not in caplog.text


def test_a_request_keeps_the_number_that_it_came_with(client):
    found = client.get("/healthz", headers={"X-Request-ID": "abc-1"})
    assert found.headers["x-request-id"] == "abc-1"
    odd = client.get("/healthz", headers={"X-Request-ID": "a b\tc"})
    assert odd.headers["x-request-id"] != "a b\tc"


def metrics(client):
    """Values of all series by name and labels; and the help of each family."""
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
    return values, {family.name: family.documentation for family in families}


def test_metrics_count_requests_by_route_and_decisions_by_sensor(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[-1.0])
    values, helps = metrics(client)
    route = "/v1/sessions/{session}/tell"
    assert values["sensortree_requests_total", route, "200", "POST"] == 1
    assert values["sensortree_request_seconds_count", route, "POST"] == 1
    of = sorted(["toy", model().version[:12]])
    assert values["sensortree_decided_total", *of] == 1
    assert values["sensortree_bought_total", *sorted([*of, "a"])] == 1
    assert values["sensortree_drift_alarm", *sorted([*of, "spend"])] == 0
    assert session["id"] not in str(values)
    assert all(helps.values())


def test_the_names_of_metrics_are_those_that_dashboards_have(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[1.0])
    act(client, session, "unavailable", sensor="b")
    values, _ = metrics(client)
    counts = "requests decided compared spent bought unavailable answers"
    seconds = ("bucket", "sum", "count")
    drift = ("training", "observed", "evidence", "alarm")
    assert {name for name, *_ in values} == {
        *(f"sensortree_{name}_total" for name in counts.split()),
        *(f"sensortree_request_seconds_{name}" for name in seconds),
        *(f"sensortree_drift_{name}" for name in drift),
    }


def test_methods_that_nobody_knows_are_counted_as_one(client):
    for n in range(3):
        client.request(f"SPAM{n}", "/v1/models")
    text = client.get("/metrics").text
    assert 'method="other"' in text
    assert "SPAM" not in text


def test_it_is_not_ready_when_the_database_cannot_be_written(path):
    with client_of(path) as client:
        other = sqlite3.connect(path)
        other.execute("DROP TABLE alive")
        other.close()
        refused(client.get("/readyz"), 503, "cannot be used now")
        assert client.get("/healthz").status_code == 200


def test_it_is_ready_when_the_database_can_be_written(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}


# a disk that is full ----------------------------------------------------------------------


def test_a_full_disk_is_told_and_nothing_acknowledged_is_lost(path):
    app = make_app(Models([model()]), path)
    acknowledged = []
    with TestClient(app, base_url="http://127.0.0.1") as client:
        session = begin(client)
        service = next(
            cell.cell_contents
            for route in app.app.routes
            if getattr(route, "name", "") == "ready"
            for cell in route.endpoint.__closure__
        )
        connection = service._writer._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 8}")
        for _ in range(2_000):
            found = client.post("/v1/sessions", json={"model": "toy"})
            if found.status_code != 201:
                break
            acknowledged.append(found.json()["id"])
        refused(found, 507, "storage of the service is full")
        assert client.get("/healthz").status_code == 200
        assert client.get(f"/v1/sessions/{session['id']}").json() == session
        connection.execute("PRAGMA max_page_count = 100000")
        assert client.post("/v1/sessions", json={"model": "toy"}).status_code == 201
    with client_of(path) as client:
        for id in acknowledged:
            assert client.get(f"/v1/sessions/{id}").status_code == 200
    connection = database.open_to_read(path)
    assert ledger.verify(connection).faults == ()
    connection.close()


# pages ------------------------------------------------------------------------------------


def test_the_page_of_the_model_is_at_the_root(client):
    found = client.get("/")
    assert found.headers["content-type"].startswith("text/html")
    assert found.headers["x-frame-options"] == "DENY"
    assert "<title>sick</title>" in found.text


def test_of_several_models_the_root_lists_the_pages(path):
    with client_of(path, model("one"), model("two", stop_loss=0.4)) as client:
        assert 'href="/models/two"' in client.get("/").text
        assert "<title>sick</title>" in client.get("/models/two").text


def test_the_watch_shows_what_was_seen(client):
    session = begin(client)
    act(client, session, "tell", sensor="a", values=[-1.0])
    text = client.get("/watch").text
    assert "1 sessions decided, 1 compared with training; 1 EUR spent" in text
    assert "No alarm." in text


def test_an_alarm_is_on_the_page_of_the_watch_from_when_it_came(path):
    policy = replace(toy_policy(), about=About(rows=1_000))
    with client_of(path, Model("toy", SavedModel(policy, None, {}))) as client:
        for _ in range(60):  # everybody buys both sensors, which training did not
            session = begin(client)
            act(client, session, "tell", sensor="a", values=[1.0])
            act(client, session, "tell", sensor="b", values=[1.0])
        text = client.get("/watch").text
    assert '<div role="alert"><p><b>2 of 2 quantities are not as in training.' in text
    assert re.search(r"<b>above, from session \d\d</b>", text)


# models -----------------------------------------------------------------------------------


def test_a_name_that_cannot_stand_in_an_address_is_refused(tmp_path):
    for name in ("a b", "..", "x/y", "é"):
        with pytest.raises(ParameterError, match="cannot be a name in an address"):
            open_models([f"{name}={tmp_path}"])


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "soup.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"soup\.json: "):
        open_models([str(tmp_path / "soup.json")])


def test_what_is_not_done_that_way_says_how_it_is(client):
    found = client.put("/v1/sessions")
    refused(found, 405, "not done that way")
    assert found.headers["allow"] == "GET, POST"


# the description --------------------------------------------------------------------------


def test_the_description_is_json_and_names_every_refusal(client):
    document = client.get("/openapi.json").json()
    assert json.dumps(document)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            assert "405" in operation["responses"]
            assert ("429" in operation["responses"]) == bool(operation["security"])


# values that training never saw -----------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sensortree.exceptions.UnseenWarning")
def test_values_that_training_never_saw_are_counted_by_sensor(path):
    from sensortree import SensorTreeClassifier

    X = np.random.default_rng(0).normal(size=(80, 2))
    fitted = SensorTreeClassifier({"x": [0], "y": [1]}, cost_weight=0.01)
    fitted.fit(X, X[:, 0] + X[:, 1] > 0)
    saved = Model("toy", SavedModel(fitted.policy_, None, {}))
    with client_of(path, saved) as client:
        session = begin(client)
        while not session["decided"]:
            sensor = session["step"]["sensor"]
            session = act(client, session, "tell", sensor=sensor, values=[1e6]).json()
        seen = client.get("/v1/models/toy/watch").json()
    assert seen["unseen"] == dict.fromkeys(session["decision"]["acquired"], 1)


def test_a_service_counts_the_decision_of_a_session_once(client):
    session = begin(client)
    for value in (-1.0, -2.0, -3.0):
        act(client, session, "correct", sensor="a", values=[value])
    assert client.get("/v1/models/toy/watch").json()["decided"] == 1


def test_a_session_with_a_limit_is_counted_and_not_compared(client):
    for more in ({"limit": 2}, {"known": {"a": [-1.0]}}, {}):
        session = begin(client, **more)
        if not session["decided"]:
            act(client, session, "tell", sensor="a", values=[-1.0])
    seen = client.get("/v1/models/toy/watch").json()
    assert (seen["decided"], seen["compared"]) == (3, 1)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    import asyncio

    from sensortree.service import gate
    from sensortree.service.schemas import RefusedError

    monkeypatch.setattr(gate, "PATIENCE", 0.05)
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive():
        for part in parts:
            return part
        await asyncio.sleep(60)

    with pytest.raises(RefusedError, match=r"did not come within 0\.05 s"):
        asyncio.run(gate.read_body(receive, 100))


# the commands -----------------------------------------------------------------------------


def command(*arguments):
    from typer.testing import CliRunner

    from sensortree.cli.app import app

    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_token_is_printed_once_and_opens_the_service(tmp_path):
    file = tmp_path / "tokens.toml"
    result = command("token", "clinic", "--scope", "ask", "--token-file", file)
    assert result.exit_code == 0
    token = result.stdout.strip()
    assert token not in file.read_text()
    caller = read_tokens(file, {}).find(token)
    assert (caller.tenant, caller.scopes) == ("default", {"ask"})
    again = command("token", "clinic", "--token-file", file)
    assert again.exit_code == 1
    assert "has a token 'clinic' already" in again.stderr


def test_names_that_would_break_the_file_are_refused(tmp_path):
    file = tmp_path / "tokens.toml"
    result = command("token", 'a"]\n', "--token-file", file)
    assert result.exit_code == 1
    assert "must be of letters" in result.stderr
    assert not file.exists()


def test_serving_elsewhere_without_tokens_is_refused_on_the_command_line(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("SENSORTREE_TOKEN", raising=False)
    save(model().saved, tmp_path / "model.json")
    result = command("serve", tmp_path / "model.json", "--host", "0.0.0.0")
    assert result.exit_code == 1
    assert "so that it needs tokens; make one with `sensortree token`" in result.stderr


def test_without_its_extra_it_says_what_to_install(tmp_path, monkeypatch):
    import sys

    save(model().saved, tmp_path / "model.json")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "sensortree.service.app")
    result = command("serve", tmp_path / "model.json")
    assert result.exit_code == 1
    assert "pip install 'sensortree[serve]'" in result.stderr


# values as people write them --------------------------------------------------------------


def of_a_file():
    """A model whose training file had dates as 31.12.2024 and levels as "Yes"."""
    rng = np.random.default_rng(0)
    day = rng.integers(19000, 19400, 200).astype(float)
    smokes = rng.choice(np.array(["Yes", "No"], dtype=object), 200)
    y = (day > 19200) ^ (smokes == "Yes")
    X = np.empty((200, 2), dtype=object)
    X[:, 0], X[:, 1] = day, smokes
    sensors = {"seen": Sensor([0]), "smokes": Sensor([1])}
    fitted = SensorTreeClassifier(sensors, cost_weight=0.001).fit(X, y)
    saved = read_model(json.loads(render(write_model(fitted, None))))
    saved.reading_ = {"x0": ColumnFormat(date="DD.MM.YYYY")}
    return Model("toy", saved)


def test_dates_and_spellings_are_read_as_in_files(path):
    plainly = {"seen": [19100.0], "smokes": ["Yes"]}
    written = {"seen": ["18.04.2022"], "smokes": [" YES "]}  # which is day 19100
    with client_of(path, of_a_file()) as client:

        def answers(known):
            stepped = client.post("/v1/models/toy/step", json={"known": known})
            begun = begin(client, known=known)
            rows = [{"values": {"x0": known["seen"][0], "x1": known["smokes"][0]}}]
            whole = client.post("/v1/models/toy/answers", json={"rows": rows})
            why = client.post("/v1/models/toy/explanation", json=rows[0])
            asked = begin(client)
            tell = f"/v1/sessions/{asked['id']}/tell"
            for sensor, values in known.items():
                told = client.post(tell, json={"sensor": sensor, "values": values})
            return (
                stepped.json()["step"]["proba"],
                told.json()["step"]["proba"],
                begun["step"]["proba"],
                whole.json()["answers"][0]["proba"],
                why.json()["probabilities"],
            )

        assert answers(written) == answers(plainly)
        wrong = client.post("/v1/models/toy/step", json={"known": {"seen": ["May"]}})
        refused(wrong, 422, "'May' is not a date, DD.MM.YYYY")
