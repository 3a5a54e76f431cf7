"""`htfi completion`: the script that teaches a shell to complete htfi's commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog="""\b
Examples:
  htfi completion bash >> ~/.bashrc
  htfi completion zsh >> ~/.zshrc
  htfi completion fish > ~/.config/fish/completions/htfi.fish
""",
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL."""
    from htfi.apps.cli.main import cli

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click offers no completion for {shell}")
    click.echo(completion(cli, {}, "htfi", "_HTFI_COMPLETE").source())
