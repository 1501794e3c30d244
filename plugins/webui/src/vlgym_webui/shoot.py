"""Make the pictures of projects: `python -m vlgym_webui.shoot [NAME|FOLDER ...]`, by default of all.

It writes `_images/0.png` (initial page) and `_images/N.png` (after interaction N) into the folders.
"""

import io
import sys
from pathlib import Path

from PIL import Image as PILImage

from vlgym.browser.chromium import Limits
from vlgym.env.rendering import decode_png
from vlgym.errors import UserError
from vlgym.files import make_folder, write_whole

from .browser import Browser
from .project import FOLDER, ProjectError, list_folders, read_folder


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
    """Render a project's ground truth; return each picture's file and size in bytes."""
    project = read_folder(folder, described=False)
    render = browser.render(project.files, project.interactions, project.viewport)
    if render.failure or render.problems:
        reason = render.failure or render.problems
        raise ProjectError(f"{folder}: the ground truth fails: {reason}; fix page or steps.")
    make_folder(folder / "_images")

    # Few colours: a pip package holds them all.
    written = []
    for number, picture in enumerate(render.pictures):
        path, buffer = folder / "_images" / f"{number}.png", io.BytesIO()
        small = PILImage.fromarray(decode_png(picture or b"")).quantize(128, dither=PILImage.Dither.NONE)
        small.save(buffer, "PNG", optimize=True)
        write_whole(path, buffer.getvalue())
        written.append((path, len(buffer.getvalue())))
    return written


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
