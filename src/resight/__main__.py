from resight.apps.cli import main

main()
