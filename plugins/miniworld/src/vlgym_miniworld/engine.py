"""Access to MiniWorld: headless, opened at first use, one drawing per environment, freed on close.

Nothing of MiniWorld, pyglet or OpenGL is imported before `open_world` is called, so constructing an
environment (as Gymnasium's vector environments do in the parent process) touches no OpenGL and
workers may be forked afterwards. Worlds, physics and pictures are MiniWorld's; this module fixes
what several worlds in one process do to each other.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vlgym.errors import MissingSystemPartError, UserError

from .plugin import PACKAGES

if TYPE_CHECKING:
    from miniworld.miniworld import MiniWorldEnv
else:  # the class it is mixed into is imported late
    MiniWorldEnv = object

SHARED_LIST = 1  # MiniWorld's one display list, for the walls of every environment of a process
FORKSERVER = 'vectorization_mode="async", vector_kwargs={"context": "forkserver"}'

_log = logging.getLogger(__name__)
_active_list = 0
_threads: dict[int, int] = {}  # process: the thread that opened OpenGL in it
_opened_in: int | None = None  # process that opened OpenGL
_fork_safe = False  # whether a child forked later can go on using it


class OwnDrawing(MiniWorldEnv):
    """Mixin over a MiniWorld class: its own display list, and a `close` that frees.

    MiniWorld records the walls of the environment that was reset last under display list 1, which
    all contexts of a process share, so the others then draw the wrong rooms. Here each environment
    owns a list, and its number is swapped in while MiniWorld draws.

    Attributes:
        unseen: `reset` and `step` leave out drawing, which takes most of a step.
    """

    shadow_window: Any
    unseen = False
    _list = 0
    _quiet = False
    _ready = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._ready = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the constructor's own unseeded reset is left out."""
        if not self._ready:
            return None, {}
        _refuse_elsewhere()
        self.shadow_window.switch_to()  # textures are loaded before MiniWorld chooses a context
        with self._moving():
            return super().reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, and draw when MiniWorld does: some worlds take things away after it."""
        _refuse_elsewhere()
        with self._moving():
            return super().step(action)

    def render_obs(self, frame_buffer: Any = None) -> Any:
        """Return the agent's view; `None` within `reset` and `step` of an `unseen` world."""
        _refuse_elsewhere()
        return None if self._quiet else super().render_obs(frame_buffer)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        self._quiet = self.unseen
        try:
            yield
        finally:
            self._quiet = False

    def _render_static(self) -> None:
        from pyglet import gl

        if not self._list:
            self._list = int(gl.glGenLists(1))
        with _drawing(self._list):
            super()._render_static()

    def _render_world(self, frame_buffer: Any, render_agent: bool) -> np.ndarray:
        with _drawing(self._list):
            return super()._render_world(frame_buffer, render_agent)

    def close(self) -> None:
        """Free frame buffers with their attachments, display list and context; safe to repeat."""
        _refuse_elsewhere()
        window, self.shadow_window = self.shadow_window, None
        if window is None or window.context is None:
            return
        from pyglet import gl

        window.switch_to()
        for frame_buffer in (self.obs_fb, self.vis_fb):
            _delete_frame_buffer(frame_buffer)
        if self._list:
            gl.glDeleteLists(self._list, 1)
        self.text_label.delete()
        super().close()
        window.close()


def open_world(name: str, image_size: tuple[int, int], *, domain_rand: bool = False, **kwargs: Any) -> Any:
    """Open a MiniWorld environment that draws its own rooms; it was not reset yet.

    Raises:
        MissingSystemPartError: OpenGL cannot be opened here; the message has the apt line.
        UserError: OpenGL was open when this process was forked, or belongs to another thread.
    """
    _refuse_elsewhere()
    height, width = image_size
    if domain_rand:
        kwargs["domain_rand"] = True  # MiniWorld's Sign does not take the argument
    # The second frame buffer serves only MiniWorld's own window; at its default size it costs 38 MB.
    kwargs |= {"obs_height": height, "obs_width": width, "window_height": 16, "window_width": 16}
    return _world_class(name)(**kwargs)


@cache
def _world_class(name: str) -> type:
    base = getattr(_import_miniworld(), name)
    return type(name, (OwnDrawing, base), {"__module__": __name__, "__doc__": base.__doc__})


@cache
def _import_miniworld() -> Any:
    """Import `miniworld.envs` headless and patch its faults; import errors become one message."""
    global _opened_in, _fork_safe
    import pyglet

    # EGL draws off screen. MiniWorld's own switch for this is read too late to have an effect.
    first = "pyglet.gl" not in sys.modules
    if first and sys.platform.startswith("linux"):
        pyglet.options["headless"] = True
        # Mesa's software renderer without threads: a forked worker can then draw, and many
        # environments do not compete for the cores. One alone would be about 10 % faster with them.
        os.environ.setdefault("LP_NUM_THREADS", "0")
        os.environ.setdefault("MESA_SHADER_CACHE_DISABLE", "true")  # its writer is a thread, too

    # pyglet's NoSuchDisplayException and NoSuchConfigException live in modules that may be missing.
    try:
        envs = importlib.import_module("miniworld.envs")
        engine = importlib.import_module("miniworld.miniworld")
        opengl = importlib.import_module("miniworld.opengl")
    except Exception as error:
        if isinstance(error, ImportError) or type(error).__module__.startswith("pyglet."):
            reason = f"{type(error).__name__}: {error}"
            raise MissingSystemPartError(
                f"MiniWorld cannot open OpenGL on this machine ({reason}). "
                "It draws without a screen through EGL and Mesa. Install them: "
                f"sudo apt-get install -y {' '.join(PACKAGES)}"
            ) from error
        raise
    renderer = importlib.import_module("pyglet.gl").gl_info.get_renderer()

    _opened_in = os.getpid()
    _fork_safe = first and renderer.startswith("llvmpipe") and os.environ["LP_NUM_THREADS"] == "0"
    _patch_lists(engine)
    _patch_resolve(opengl)
    # "Falling back to num_samples=4" belongs into the log, not on stdout.
    vars(opengl)["print"] = lambda *parts, **_: _log.debug(" ".join(map(str, parts)))
    return envs


def _patch_lists(engine: Any) -> None:
    """Let MiniWorld's module use the active environment's display list for list 1."""
    delete, new, call = engine.glDeleteLists, engine.glNewList, engine.glCallList

    def own(number: int) -> int:
        return _active_list if number == SHARED_LIST and _active_list else number

    engine.glDeleteLists = lambda number, count: delete(own(number), count)
    engine.glNewList = lambda number, mode: new(own(number), mode)
    engine.glCallList = lambda number: call(own(number))


def _patch_resolve(opengl: Any) -> None:
    """Leave out the copy of the depth buffer, which is never read: 0.15 ms at 224 x 224."""
    from pyglet.gl import GL_DEPTH_BUFFER_BIT

    blit = opengl.glBlitFramebuffer

    def copy_color(*args: Any) -> None:
        if not (_active_list and args[8] == GL_DEPTH_BUFFER_BIT):
            blit(*args)

    opengl.glBlitFramebuffer = copy_color


@contextmanager
def _drawing(number: int) -> Iterator[None]:
    global _active_list
    _active_list = number
    try:
        yield
    finally:
        _active_list = 0


def _delete_frame_buffer(frame_buffer: Any) -> None:
    """Delete a MiniWorld frame buffer and its attachments; OpenGL knows their names."""
    from pyglet import gl

    target, kind = gl.GL_FRAMEBUFFER, gl.GL_FRAMEBUFFER_ATTACHMENT_OBJECT_NAME
    for fbo in (frame_buffer.multi_fbo, frame_buffer.final_fbo):
        gl.glBindFramebuffer(target, fbo)
        color, depth = gl.GLuint(0), gl.GLuint(0)
        for point, name in ((gl.GL_COLOR_ATTACHMENT0, color), (gl.GL_DEPTH_ATTACHMENT, depth)):
            number = gl.GLint(0)
            gl.glGetFramebufferAttachmentParameteriv(target, point, kind, number)
            name.value = number.value
        gl.glBindFramebuffer(target, 0)
        gl.glDeleteFramebuffers(1, fbo)
        gl.glDeleteTextures(1, color)
        gl.glDeleteRenderbuffers(1, depth)


def _refuse_elsewhere() -> None:
    if _opened_in is not None and _opened_in != os.getpid() and not _fork_safe:
        raise UserError(
            "OpenGL was already open when this process was forked, and its driver would hang here. "
            "Make the vector environment before the first reset of a MiniWorld environment in the "
            f"parent, or start the workers afresh: gymnasium.make_vec(..., {FORKSERVER})."
        )

    # In another thread pictures would stand still.
    if _threads.setdefault(os.getpid(), threading.get_ident()) != threading.get_ident():
        raise UserError(
            "OpenGL belongs to the thread that first used a MiniWorld environment in this process, "
            "and this is another one. Use all of them in that thread, or in processes: "
            'gymnasium.make_vec(..., vectorization_mode="async").'
        )
