"""Make the pictures of projects: `python -m vlgym_webui.shoot [NAME|FOLDER ...]`, by default of all shipped ones.

Writes `_images/0.png` (initial page) and `_images/N.png` (after interaction N) into each project's folder, in few
colours and small.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image as PILImage

from vlgym.browser.chromium import Limits
from vlgym.errors import UserError

from .browser import Browser
from .project import FOLDER, list_folders
from .steps import ProjectError, read_interactions, read_yaml

COLORS = 128
MOST_BYTES = 300_000


def main(arguments: list[str]) -> int:
    """Shoot the named projects; return the exit status."""
    folders = [Path(name) if "/" in name else FOLDER / name for name in arguments] or list_folders()
    browser = Browser(Limits(wall_s=60, cpu_s=60))
    try:
        for folder in folders:
            for path, size in shoot(folder, browser):
                print(f"{path.relative_to(folder.parent)}  {size} bytes")
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        browser.close()
    return 0


def shoot(folder: Path, browser: Browser) -> list[tuple[Path, int]]:
    """Render a project's ground truth and write its pictures; return each file and its size in bytes.

    The description is not read, since its pictures may not exist yet.

    Raises:
        ProjectError: the page or an interaction fails, or a picture is too large.
    """
    card = folder / "project.yaml"
    if not card.is_file():
        raise ProjectError(f"{card}: the file is missing; write 'title: ...' and the interactions.")
    fields = read_yaml(card.read_text("utf-8"), str(card)).value
    interactions = read_interactions(fields["interactions"]) if "interactions" in fields else ()
    viewport = [side.value for side in fields["viewport"].value] if "viewport" in fields else (800, 600)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    render = browser.render(files, interactions, (viewport[0], viewport[1]))
    if render.failure or render.problems:
        raise ProjectError(f"{card}: the ground truth fails: {render.failure or render.problems}; fix page or steps.")
    (folder / "_images").mkdir(exist_ok=True)
    written = []
    for number, picture in enumerate(render.pictures):
        data = shrink(picture or b"")
        path = folder / "_images" / f"{number}.png"
        if len(data) > MOST_BYTES:
            raise ProjectError(
                f"{path}: {len(data)} bytes, more than {MOST_BYTES}; use a smaller viewport or plainer graphics."
            )
        path.write_bytes(data)
        written.append((path, len(data)))
    return written


def shrink(png: bytes) -> bytes:
    """Return the picture in at most 128 colours, well compressed."""
    with PILImage.open(io.BytesIO(png)) as picture:
        buffer = io.BytesIO()
        picture.convert("RGB").quantize(COLORS, dither=PILImage.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
