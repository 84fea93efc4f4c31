"""`python -m shared.cli`: the `jaato` command without its script."""

from shared.cli.main import main

main()
