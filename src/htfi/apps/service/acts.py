"""What a caller asks to have done: by whom, once for an Idempotency-Key, in a thread, answered with what came of it."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from fastapi import Header, Request, Response

from htfi.apps.service.callers import LOCAL, caller_of
from htfi.apps.service.problems import MEDIA_TYPE, problem, status_of
from htfi.apps.service.schema import JSON
from htfi.apps.service.served_run import ServedRun, run_of
from htfi.domain.errors import AccessDenied, DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.governance import check_person_name
from htfi.wiring.authorisation import Requester, has_people
from htfi.wiring.request_token import RequestToken, new_token
from htfi.wiring.service.answered_requests import StoredAnswer

_KEY = re.compile(r'"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"|([\x21\x23-\x5b\x5d-\x7e]{1,255})')

IdempotencyKey = Annotated[
    str | None,
    Header(
        description="names the request: repeated with the same key and body it is done once, for 24 hours",
        max_length=257,
    ),
]
Act = Callable[[RequestToken], tuple[int, msgspec.Struct]]


async def perform(request: Request, content: bytes, act: Act, *, is_vital: bool = False) -> Response:
    """Do what a request asks, once where it has a key. `act` gives the status and the body of the answer.

    What `is_vital` is done even where no key can be kept, for a full disk. Raises: as `act`, and for its key.
    """
    run, caller = run_of(request), caller_of(request)
    who = f"{caller.tenant}\n{caller.key or caller.name}"  # names of keys come again, ids never
    return await run.acts.call(
        partial(_once, run, who, _key_of(request), _digest(request, content), act, is_vital)
    )


def requester_of(request: Request, by: str, signed: str) -> Requester:
    """Who asks for an act: by a signed statement where the governance folder has people, else by name.

    A caller with a key of the service is named as its key is. Raises: InvalidInput, AccessDenied.
    """
    run = run_of(request)
    if run.governance is not None and has_people(run.governance):
        if not signed:
            raise AccessDenied(
                "the governance folder names people: send `signed`, a request signed with a person's key "
                "(docs/service-acts.md)"
            )
        return Requester(by, run.governance, note=signed)
    if signed:
        raise InvalidInput("signed: the service has no governance folder with people: leave it out")
    return Requester(named(request, by))


def named(request: Request, by: str) -> str:
    """The name under which a caller acts. Raises: InvalidInput, AccessDenied."""
    caller = caller_of(request)
    if caller is not LOCAL:
        if by not in ("", caller.name):
            raise AccessDenied(f"by: the key is that of {caller.name}: leave the name out")
        by = caller.name
    if not by.strip():
        raise InvalidInput("by: a name is required: the record states who did it")
    check_person_name(by, "by")
    return by


def _once(run: ServedRun, who: str, key: str, asked: str, act: Act, is_vital: bool) -> Response:
    if not key:
        return _response(*act(new_token()))
    try:
        begun = run.answered.begin(who, key, asked)
    except DependencyUnavailable:
        if not is_vital:
            raise
        return _response(*act(new_token()))
    if isinstance(begun, StoredAnswer):
        return Response(
            begun.body, begun.status, media_type=begun.media_type, headers={"Idempotency-Replayed": "true"}
        )
    try:
        status, body = act(begun)
        answer = StoredAnswer(status, JSON, msgspec.json.encode(body))
    except AccessDenied as refusal:  # the run may have recorded that it was tried
        content = problem(status_of(refusal), str(refusal)).body
        answer = StoredAnswer(status_of(refusal), MEDIA_TYPE, bytes(content))
    except HtfiError as error:
        with suppress(DependencyUnavailable):
            if status_of(error) < 500:
                run.answered.forget(who, key)
        run.answered.leave_open(who, key)
        raise
    except BaseException:
        run.answered.leave_open(who, key)
        raise
    with suppress(DependencyUnavailable):  # it is done: who asks again is answered under the same token
        run.answered.answer(who, key, answer)
    return Response(answer.body, answer.status, media_type=answer.media_type)


def _response(status: int, body: Any) -> Response:
    return Response(msgspec.json.encode(body), status, media_type=JSON)


def _key_of(request: Request) -> str:
    found = request.headers.getlist("idempotency-key")
    if not found:
        return ""
    matched = _KEY.fullmatch(found[0].strip()) if len(found) == 1 else None
    if matched is None:
        raise InvalidInput("Idempotency-Key: write one text of 1 to 255 printable characters, such as a UUID")
    return matched[1] or matched[2]


def _digest(request: Request, content: bytes) -> str:
    head = f"{request.method}\n{request.url.path}\n{request.url.query}\n"
    return sha256(head.encode() + content).hexdigest()
