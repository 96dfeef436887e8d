"""An installation of the build for tests of outside projects: made once for a build and shared by them, in a folder beside
the tests. Projects are copied away from the source tree before they are built, and see the installed files only."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess

from tool_case import BUILD, SOURCE, environment


def call(*words, cwd=None, **env):
    """A command that has to work; gives its output."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=cwd, timeout=600,
                          stdin=subprocess.DEVNULL, env=environment(**env))
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def stamp():
    """Names the state of what is installed."""
    text = []
    roots = [BUILD / "lib", BUILD / "bin", BUILD / "libexec", SOURCE / "include", SOURCE / "plugins/common",
             SOURCE / "plugins/null", SOURCE / "cmake", BUILD / "cmake_install.cmake", BUILD / "heddle.pc"]
    for root in roots:
        for path in [root, *root.rglob("*")]:
            if path.is_file():
                text.append(f"{path} {path.stat().st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(text)).encode()).hexdigest()[:16]


def prefix():
    """The folder of the installation; made where there is none of this state."""
    folder = BUILD / "tests" / "installed"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = stamp()
        if not (folder / name).is_dir():
            for old in folder.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            call("cmake", "--install", BUILD, "--prefix", folder / "new")
            os.rename(folder / "new", folder / name)
    return folder / name


def project(source, folder, **flags):
    """Copies a project, builds it against the installation, and gives the folder of its plugins. No word of its build
    names a file of the source tree, or of the build outside the installation."""
    home = prefix()
    if source != folder:
        shutil.copytree(source, folder)
    build = folder / "build"
    words = [f"-DCMAKE_{name}={value}" for name, value in flags.items()]
    call("cmake", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={home}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *words)
    call("cmake", "--build", build, "--parallel", "2")
    commands = (build / "compile_commands.json").read_text().replace(str(home), "PREFIX")
    assert str(SOURCE) not in commands and str(BUILD) not in commands
    return build / "lib" / "heddle" / "plugins"


def tool(*words, plugins, cwd=None, status=0, **env):
    """The installed tool with the plugins of a folder; gives stdout, or stderr where it is to fail."""
    done = subprocess.run([str(prefix() / "bin" / "heddle"), *map(str, words)], capture_output=True, text=True, cwd=cwd,
                          timeout=1500, stdin=subprocess.DEVNULL,
                          env=environment(HEDDLE_PLUGIN_PATH=str(plugins), **env))
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def exports(path):
    return [line.split()[-1] for line in call("nm", "-D", "--defined-only", pathlib.Path(path)).splitlines()]
