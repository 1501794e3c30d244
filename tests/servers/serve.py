"""`transformers serve`, the library's own server, also where torchvision is not whole.

python tests/servers/serve.py FOLDER --host 127.0.0.1 --port 0
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from torchvision_here import make_decoding, make_importable

if __name__ == "__main__":
    make_importable()
    make_decoding()
    from transformers.cli.transformers import app  # its `main` would ask for updates first

    app(["serve", *sys.argv[1:]])
