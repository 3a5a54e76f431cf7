"""No person has a name by which the record means the system itself."""

import click
import pytest
from click.testing import CliRunner

from htfi.adapters.keys.ed25519 import signing_key
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.governance import SystemName, check_person_name
from htfi.governance.bundles.bundle import parse_officers
from htfi.governance.people import parse_people

KEY = str(signing_key("example.com/ann", bytes(range(32))).verifier_key)
NAMES = [
    *SystemName,
    "Governance  Log",
    " governance log ",
    "ｇovernance log",
    "governance\u200b log",
    "the breaker clock",
    "The Breaker",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_system_is_refused_however_it_is_written(name: str) -> None:
    with pytest.raises(InvalidInput, match="is reserved"):
        check_person_name(name, "--by")
    with pytest.raises(InvalidInput, match=r"people\.toml.*(is reserved|can be printed)"):
        parse_people(f'[[people]]\nname = "{name}"\nkey = "{KEY}"\n', "people.toml")
    with pytest.raises(InvalidInput, match=r"officers\.toml.*is reserved"):
        parse_officers(f'quorum = 1\n[officers]\n"{name}" = "{KEY}"\n', "officers.toml")


@pytest.mark.parametrize("name", ["Ann Lee", "governance logistics", "Breaker Morant", "设置", "o'Hara"])
def test_other_names_are_taken(name: str) -> None:
    check_person_name(name, "--by")
    assert parse_people(f'[[people]]\nname = "{name}"\nkey = "{KEY}"\n', "people.toml").find(name) is not None


COMMANDS = [
    ("stop", "--why", "x"),
    ("reenable", "--why", "x"),
    ("quarantine", "admit", ".", "1", "--why", "x"),
    ("suspicion", "clear", ".", "--why", "x"),
    ("approvals", "approve", ".", "1", "--seen", "0" * 8, "--why", "x"),
    ("orders", "enable", ".", "--scope", "firm", "--why", "x"),
    ("orders", "disable", ".", "--scope", "firm", "--why", "x"),
    ("orders", "cancel-all", ".", "--why", "x"),
    ("models", "promote", "x.toml", "--governance", ".", "--why", "x"),
    ("models", "rollback", "models", "--governance", ".", "--why", "x"),
    ("sandbox", "x.toml"),
    ("policy", "draft", ".", "--out", "x.toml"),
    ("regulate", "attest", ".", "stress-test", "--why", "x"),
    ("regulate", "retention", "apply", ".", "--why", "x"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_refuses_it_with_one_line(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*words, "--by", "Governance Log"])
    assert done.exit_code == 2
    assert "'Governance Log' is reserved: the record means the system itself by it" in done.output


def test_no_option_for_a_name_is_left_out() -> None:
    """Of every command that has --by, but where it chooses what costs are shown by."""
    found: dict[str, str] = {}

    def walk(command: click.Command, path: str) -> None:
        context = click.Context(command)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                one = command.get_command(context, name)
                assert one is not None
                walk(one, f"{path} {name}".strip())
        for one in command.params:
            if "--by" in one.opts and not isinstance(one.type, click.Choice):
                found[path] = one.type.name

    walk(cli, "")
    assert len(found) >= len(COMMANDS)
    assert {path for path, kind in found.items() if kind != "person"} == set()
