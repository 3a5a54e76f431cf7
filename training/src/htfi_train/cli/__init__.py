"""The commands of `htfi models` that train. `htfi.apps.cli.models.command` imports them by name when one is used."""
