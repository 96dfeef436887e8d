"""The manual page and bash's completion: neither lacks a command or an option of the tool's help, nor has one more, and
the completion offers devices, settings, files and fixed words where they belong.
timeout: 300
"""
import json
import re
import shutil
import subprocess

import pytest
from tool_case import BUILD, SOURCE, environment, failing, good

SCRIPT = SOURCE / "tools" / "heddle.bash"
MANUAL = BUILD / "share" / "man" / "man1" / "heddle.1"
PLUGINS = BUILD / "lib" / "heddle" / "plugins"
BASH = """
source "$SCRIPT"
PATH=$TOOLS:$PATH
COMP_LINE=$LINE COMP_POINT=${#LINE}
_heddle
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands():
    """Of `heddle help`."""
    return re.findall(r"^  (\S+)  ", good("help"), re.M)


def options(command):
    """Name, what its value is called or None, and text of each option."""
    found = re.findall(r"^  --([\w-]+)(?: (\S+))? +(\S.*)$", good(command, "--help"), re.M)
    assert found
    return [(name, value or None, text) for name, value, text in found]


def complete(line, cwd=None, **env):
    """What bash offers for a line, the cursor at its end."""
    plugins = ":".join(str(PLUGINS / f"libheddle_plugin_{n}.so") for n in ("cpu", "sim"))
    done = subprocess.run([shutil.which("bash"), "--norc", "--noprofile", "-c", BASH], capture_output=True, text=True,
                          cwd=cwd, timeout=60, stdin=subprocess.DEVNULL,
                          env={**environment(HEDDLE_PLUGINS=plugins, **env), "SCRIPT": str(SCRIPT), "LINE": line,
                               "TOOLS": str(BUILD / "bin")})
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.splitlines()


# ---- the manual page

def test_the_manual_has_what_the_help_has():
    source = MANUAL.read_text()
    assert source == good("man")
    parts = dict(re.findall(r'^\.SS "heddle (\S+).*?\n(.*?)(?=^\.S[SH])', source.replace("\\-", "-"), re.M | re.S))
    assert list(parts) + ["help"] == commands()
    for command, text in parts.items():
        listed = re.findall(r"^\.BR --([\w-]+)(?: \" \\fI(\S+)\\fP\")?$", text, re.M)
        assert listed == [(name, value or "") for name, value, _ in options(command)], command
        for _, _, help in options(command):
            assert help.removesuffix("; may be repeated") in text.replace("\\(aq", "'").replace("\\e", "\\"), help
    known = {name for command in parts for name, _, _ in options(command)} | {"version"}
    assert set(re.findall(r"--([a-z][\w-]*)", source.replace("\\-", "-"))) <= known


@pytest.mark.parametrize("renderer", [["groff", "-man", "-ww", "-Tutf8"], ["mandoc", "-T", "utf8", "-W", "warning"],
                                      ["man", "-l", "--warnings=w"]])
def test_the_manual_renders(renderer):
    if shutil.which(renderer[0]) is None:
        pytest.skip(f"{renderer[0]} is not installed")
    done = subprocess.run([*renderer, str(MANUAL)], capture_output=True, text=True, timeout=60,
                          env={**environment(), "MANPAGER": "cat", "MAN_KEEP_FORMATTING": "", "MANWIDTH": "100"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "runs a model on several kinds of processor" in plain and "EXIT STATUS" in plain


def test_man_takes_no_words():
    assert "one word too many" in failing(2, "man", "run")


# ---- the completion

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
def test_commands_and_options_complete():
    assert complete("heddle ") == [*commands(), "--help", "--version"]
    assert complete("heddle c") == [c for c in commands() if c.startswith("c")]
    assert complete("heddle help r") == ["run", "rpc-server", "rpc-tracker", "rpc-proxy", "rpc-tunnel"]
    assert complete("heddle nothing ") == []
    for command in commands():
        if command != "help":
            assert complete(f"heddle {command} --") == [f"--{name}" for name, _, _ in options(command)]
    assert complete("heddle run x.json --prof") == ["--profile", "--profile-json", "--profile-runs"]


@needs_bash
def test_devices_complete():
    plugins = ":".join(str(PLUGINS / f"libheddle_plugin_{n}.so") for n in ("cpu", "sim"))
    there = [d["name"] for d in json.loads(good("devices", "--json", "--all", HEDDLE_PLUGINS=plugins))["devices"]]
    assert "sim:1" in there
    sims = [d for d in there if d.startswith("sim:")]
    assert complete("heddle run x --device ") == there
    assert complete("heddle run x --device s") == sims
    behind = [d.removeprefix("sim:") for d in sims]  # bash replaces what is behind the colon alone
    assert complete("heddle run x --device sim:") == behind
    assert complete("heddle run x --device=cpu,s") == [f"cpu,{d}" for d in sims]
    assert complete("heddle compare x --b s") == sims
    assert complete("heddle run x --place 'conv*'=s") == sims
    assert complete("heddle run x --place a") == ["auto"]
    assert complete("heddle run x --memory c") == ["cpu:0="]
    assert complete("heddle run x --set devices=cpu,s") == [f"cpu,{d}" for d in sims]


@needs_bash
def test_settings_complete():
    """The keys are those that docs/cli.md lists, and what the plugins here describe."""
    text = (SOURCE / "docs" / "cli.md").read_text().split("## Settings")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*)\|$", text, re.M)
    keys = {k for left, _ in rows for k in re.findall(r"`([^`]+)`", left)}
    keys |= {k for left, right in rows if left == "`place`" for k in re.findall(r"`(place\.\w+)`", right)}
    of_plugin = re.compile(r"(PLUGIN|cpu|opencl|remote|vulkan|cuda|rocm|sim)\.")
    offered = {k.removesuffix("=") for k in complete("heddle run x --set ")}
    assert {k for k in offered if not of_plugin.match(k)} == {k for k in keys if not of_plugin.match(k)}
    assert "cpu.onednn" in offered
    assert complete("heddle run x --set log=") == ["off", "error", "warn", "info", "debug", "trace"]
    assert complete("heddle run x --set=prec") == ["precision="]


@needs_bash
def test_fixed_words_are_those_of_the_help():
    seen = 0
    for command in commands()[:-1]:
        for name, value, text in options(command):
            if value in ("WORD", "CLOCK"):
                offered = complete(f"heddle {command} --{name} ")
                assert offered, (command, name)
                for word in offered:
                    assert word.removesuffix(":") in text, (command, name, word)
                seen += 1
            elif name == "optimize":
                table = re.findall(r"^\| `(\w+)` \|", (SOURCE / "docs" / "optimize.md").read_text(), re.M)
                assert complete(f"heddle {command} --{name} ") == ["on", "off", *table]
                assert complete(f"heddle {command} --{name} fold,c") == ["fold,cse", "fold,conv"]
    assert seen >= 6


@needs_bash
def test_files_complete_by_their_suffix(tmp_path):
    for name in ("a.json", "a.params", "a.onnx", "a.so", "a.npy", "a.txt", "a b.json", ".hidden.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "in.npy").write_text("")

    def offered(words):
        return sorted(complete(f"heddle {words}", cwd=tmp_path))

    assert offered("run ") == ["a.json", "a.onnx", "a.so", "a\\ b.json", "folder/"]
    assert offered("check-plugin a") == ["a.json", "a.so", "a\\ b.json"]
    assert offered("run a.json --lib ") == ["a.so", "folder/"]
    assert offered("run a.json --params ") == ["a.params", "folder/"]
    assert offered("run a.json --output-dir ") == ["folder/"]
    assert offered("run a.json --trace ") == ["a.json", "a\\ b.json", "folder/"]
    assert offered("run a.json --input x=") == ["a.npy", "folder/"]
    assert offered("run a.json --input=x=folder/") == ["folder/in.npy"]
    assert offered("run a.json --input ") == []
    assert offered("run .h") == [".hidden.json"]
    assert offered("convert a.onnx -o a") == ["a.json", "a\\ b.json"]
    assert offered("check-plugin a.so --store ") == ["folder/"]
    assert offered("devices ") == []


@needs_bash
def test_bash_completes_with_it():
    done = subprocess.run(["bash", "--norc", "-c", 'source "$1"; complete -p heddle', "bash", str(SCRIPT)],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "complete -o default -F _heddle heddle\n", done
