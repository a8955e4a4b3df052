"""``python -m sensortree``: the command line."""

from sensortree.cli import main

if __name__ == "__main__":
    main()
