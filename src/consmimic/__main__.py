"""``python -m consmimic``."""

from consmimic.cli import main

if __name__ == "__main__":
    main()
