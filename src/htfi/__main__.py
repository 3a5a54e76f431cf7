"""`python -m htfi` is `htfi`."""

from htfi.apps.cli.main import main

main()
