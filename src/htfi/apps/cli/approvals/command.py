"""`htfi approvals`: what a run asks people, and their answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from htfi.apps.cli.approvals import view
from htfi.apps.options import requester_options, why_option
from htfi.governance.checkpoints.requests import AnswerKind
from htfi.wiring.approvals import find_question, give_answer, list_questions
from htfi.wiring.authorisation import Requester

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
WHICH = click.argument("which", metavar="ID")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SEEN = click.option(
    "--seen",
    required=True,
    metavar="DIGEST",
    help="First digits of the digest that `show` printed, 8 or more.",
)


def _answer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = requester_options("Name of the person who answers.")(command)
    for option in (why_option, SEEN, WHICH, FOLDER):
        command = option(command)
    return command


@click.group("approvals", short_help="Decisions that wait for people: list, show, approve, deny, delegate.")
def command() -> None:
    """List and answer what a run asks people about its decisions.

    A decision beyond the limits of the policy bundle's [checkpoints] waits until enough people approve it, a person
    denies it, or its deadline passes. ID is the decision's id, or its number in the list.

    \b
    Examples:
      htfi approvals list DIR
      htfi approvals show DIR 1
      htfi approvals approve DIR 1 --seen 3f9a02c4 --by Ann --why "checked"
    """


@command.command("list", short_help="List what waits and what was decided.")
@FOLDER
@click.option("--all", "show_all", is_flag=True, help="Also what is decided.")
@JSON
def list_command(folder: Path, show_all: bool, as_json: bool) -> None:
    """List the decisions that wait, oldest first.

    \b
    Examples:
      htfi approvals list DIR
      htfi approvals list DIR --all --json
    """
    listed = [one for one in list_questions(folder) if show_all or not one.recorded.state.is_final]
    if as_json:
        for one in listed:
            click.echo(view.as_json(one))
    else:
        view.show_list(listed, folder)


@command.command(short_help="Show one decision: what is asked, its digest, what happened.")
@FOLDER
@WHICH
@JSON
def show(folder: Path, which: str, as_json: bool) -> None:
    """Show what a run asks about a decision, and the digest that an answer names.

    \b
    Examples:
      htfi approvals show DIR 1
      htfi approvals show DIR 1 --json
    """
    one = find_question(folder, which)
    click.echo(view.as_json(one) if as_json else view.as_text(one), nl=as_json)


@command.command(short_help="State for the record that a person has seen it.")
@FOLDER
@WHICH
@SEEN
@requester_options("Name of the person who has seen it.")
def acknowledge(folder: Path, which: str, seen: str, requester: Requester) -> None:
    """State that a person has seen what is asked, and has not decided yet.

    \b
    Example:
      htfi approvals acknowledge DIR 1 --seen 3f9a02c4 --by "Ann Lee"
    """
    click.echo(view.answered(give_answer(folder, which, AnswerKind.SEEN, requester, seen=seen), folder))


@command.command(short_help="Approve a decision; the record names who did it.")
@_answer_options
def approve(folder: Path, which: str, requester: Requester, **options: Any) -> None:
    """Approve a decision that waits. It is released once as many people have approved it as the bundle asks for.

    \b
    Examples:
      htfi approvals approve DIR 1 --seen 3f9a02c4 --by Ann --why "checked"
      htfi approvals approve DIR 1 --seen 3f9a --governance G --key a.key --why ok
    """
    click.echo(view.answered(give_answer(folder, which, AnswerKind.APPROVE, requester, **options), folder))


@command.command(short_help="Deny a decision: it stays withheld.")
@_answer_options
def deny(folder: Path, which: str, requester: Requester, **options: Any) -> None:
    """Deny a decision that waits: it stays withheld. One denial is enough.

    \b
    Example:
      htfi approvals deny DIR 1 --seen 3f9a02c4 --by Ann --why "stale"
    """
    click.echo(view.answered(give_answer(folder, which, AnswerKind.DENY, requester, **options), folder))


@command.command(short_help="Hand a decision to another person.")
@_answer_options
@click.option("--to", required=True, metavar="NAME", help="Who is to answer instead.")
def delegate(folder: Path, which: str, requester: Requester, **options: Any) -> None:
    """Hand a decision that waits to another person, who must have the right to approve it.

    \b
    Example:
      htfi approvals delegate DIR 1 --to Bo --seen 3f9a02c4 --by Ann --why "leave"
    """
    click.echo(view.answered(give_answer(folder, which, AnswerKind.DELEGATE, requester, **options), folder))
