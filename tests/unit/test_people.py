"""The directory of people: what it may hold, and that a statement counts for its signer alone."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from htfi.adapters.keys.ed25519 import SigningKey, signing_key, verify_signature
from htfi.domain.errors import AccessDenied, IntegrityError, InvalidInput
from htfi.domain.time import to_ns
from htfi.governance.authorisation import AccessAction, PrincipalKind
from htfi.governance.ledger.note import NoteSignature, SignedNote, parse_note
from htfi.governance.people import (
    PeopleDirectory,
    RequestStatement,
    find_node,
    identify,
    parse_people,
    sign_statement,
)

ANN_KEY = signing_key("example.com/ann", bytes(range(32)))
BO_KEY = signing_key("example.com/bo", bytes(range(1, 33)))
STRANGER = signing_key("example.com/ann", bytes(range(2, 34)))  # under Ann's name
TEXT = f"""
[[people]]
name = "Ann Lee"
key = "{ANN_KEY.verifier_key}"
roles = ["approver"]
desks = ["equities"]
until = 2027-03-31

[[people]]
name = "Bo Chan"
key = "{BO_KEY.verifier_key}"
roles = ["risk_officer"]
tenant = "alpha"

[[nodes]]
name = "edge1"
certificate = "edge1"
roles = ["edge"]
"""
STATEMENT = RequestStatement(AccessAction.END_SUSPICION, "suspicion:JPM", "run-key", 1_000, "our own test")


@pytest.fixture
def people() -> PeopleDirectory:
    return parse_people(TEXT, "people.toml")


def signed(key: SigningKey) -> str:
    return sign_statement(STATEMENT, key.verifier_key, key)


def test_directory_gives_people_by_key_and_nodes_by_certificate(people: PeopleDirectory) -> None:
    ann = people.by_key[ANN_KEY.verifier_key]
    assert (ann.kind, ann.id, ann.roles, ann.desks, ann.tenant) == (
        PrincipalKind.PERSON, "Ann Lee", ("approver",), ("equities",), "",
    )  # fmt: skip
    assert ann.until_ns == to_ns(datetime(2027, 4, 1, tzinfo=UTC)) - 1  # the day is hers to its end
    assert people.find("Bo Chan") is people.by_key[BO_KEY.verifier_key]
    node = find_node("edge1", people)
    assert (node.kind, node.roles, node.until_ns) == (PrincipalKind.NODE, ("edge",), None)
    assert people.find("edge1") is None
    with pytest.raises(AccessDenied, match=r"no certificate of people\.toml has the subject 'edge2'"):
        find_node("edge2", people)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[people]]\nname = "A"', "A needs a key or a certificate, one of the two"),
        ('[[people]]\nname = "A"\nkey = "k"\ncertificate = "c"', "A needs a key or a certificate"),
        ('[[people]]\nname = "A"\nkey = "k"', "A: 'k' is not a verifier key"),
        ('[[people]]\nname = " "\ncertificate = "c"', "an entry has no name"),
        ('[[people]]\nname = "A"\ncertificate = "c"\nrole = ["x"]', "unknown field `role`"),
        (
            '[[people]]\nname = "A"\ncertificate = "c"\nuntil = "2027-03-31"',
            "A: until must be a date such as 2027-12-31, without quotes",
        ),
        ("people = 3", "is no directory of people"),
        ("[[people", "is no directory of people"),
        (
            '[[people]]\nname = "A"\ncertificate = "c"\n[[people]]\nname = "A"\ncertificate = "d"',
            "A is there twice",
        ),
        (
            '[[people]]\nname = "A"\ncertificate = "c"\n[[nodes]]\nname = "B"\ncertificate = "c"',
            "B has the certificate of another person",
        ),
        (
            f'[[people]]\nname = "A"\nkey = "{ANN_KEY.verifier_key}"\n'
            f'[[people]]\nname = "B"\nkey = "{ANN_KEY.verifier_key}"',
            "B has the key of another person",
        ),
        (
            f'[[people]]\nname = "A"\nkey = "{ANN_KEY.verifier_key.as_witness()}"',
            "A: a witness's key cannot sign requests",
        ),
    ],
)
def test_directory_that_is_wrong_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^G/people\.toml: .*{message}") as refused:
        parse_people(text, "G/people.toml")
    assert "\n" not in str(refused.value)


def test_statement_is_its_signers(people: PeopleDirectory) -> None:
    principal, statement = identify(signed(BO_KEY), people, verify_signature)
    assert (principal.id, principal.tenant, statement) == ("Bo Chan", "alpha", STATEMENT)


def test_a_request_that_is_not_signed_is_refused_with_what_to_do(people: PeopleDirectory) -> None:
    with pytest.raises(AccessDenied, match=r"is not signed, and .* people: give --governance G --key FILE"):
        identify("", people, verify_signature)


def test_another_key_under_a_known_name_is_nobody(people: PeopleDirectory) -> None:
    with pytest.raises(AccessDenied, match=r"signed by example\.com/ann: no key in people\.toml verifies it"):
        identify(signed(STRANGER), people, verify_signature)


def test_altered_statement_is_nobodys(people: PeopleDirectory) -> None:
    note = signed(BO_KEY).replace("suspicion:JPM", "suspicion:IBM")
    with pytest.raises(AccessDenied, match="no key"):
        identify(note, people, verify_signature)


def test_statement_of_two_people_is_refused(people: PeopleDirectory) -> None:
    one, other = parse_note(signed(ANN_KEY)), parse_note(signed(BO_KEY))
    both = str(SignedNote(one.text, (*one.signatures, *other.signatures)))
    with pytest.raises(AccessDenied, match="signed by several people"):
        identify(both, people, verify_signature)


@pytest.mark.parametrize(
    "text",
    [
        "htfi.request/1\n{}\n",
        "another/1\n{}\n",
        'htfi.request/1\n{"action":"fly","resource":"","run":"","at_ns":1}\n',
        'htfi.request/1\n{"action":"stop", "resource":"","run":"","at_ns":1,"why":"","seen":"","to":""}\n',
    ],
)
def test_signed_text_that_is_no_statement_is_malformed(text: str, people: PeopleDirectory) -> None:
    key = ANN_KEY.verifier_key
    note = str(SignedNote(text, (NoteSignature(key.name, key.key_id, ANN_KEY.sign(text.encode())),)))
    with pytest.raises(IntegrityError, match="malformed request"):
        identify(note, people, verify_signature)


def test_same_statement_has_one_form() -> None:
    assert signed(ANN_KEY) == signed(ANN_KEY)
    assert sign_statement(replace(STATEMENT, why=""), ANN_KEY.verifier_key, ANN_KEY) != signed(ANN_KEY)
