"""``penstock completion``: shell completion of commands and options, generated from the parser."""

from __future__ import annotations

import argparse

from penstock.cli.main import build_parser

__all__ = ["completion"]

_BASH = """\
_penstock() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words
    case $COMP_CWORD-$command in
        1-*) words="{commands}" ;;
{cases}
    esac
    if [[ -n $words && ( $COMP_CWORD -eq 1 || $word == -* ) ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _penstock penstock
"""

_FISH_COMMAND = "complete -c penstock -n __fish_use_subcommand -f -a {name} -d '{help}'"
_FISH_OPTION = "complete -c penstock -n '__fish_seen_subcommand_from {name}' -l {option} -d '{help}'"


def completion(options: argparse.Namespace) -> int:
    """Print the completion script."""
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](), end="")
    return 0


def bash() -> str:
    """Return the script for bash."""
    commands = _commands()
    cases = "\n".join(
        f'        *-{name}) words="{" ".join(option for option, _ in found)}" ;;'
        for name, (_, found) in commands.items()
    )
    return _BASH.format(commands=" ".join(commands), cases=cases)


def zsh() -> str:
    """Return the script for zsh, which understands bash's."""
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    """Return the script for fish."""
    lines = []
    for name, (text, options) in _commands().items():
        lines.append(_FISH_COMMAND.format(name=name, help=_quoted(text)))
        lines += [
            _FISH_OPTION.format(name=name, option=option.removeprefix("--"), help=_quoted(help_text))
            for option, help_text in options
            if option.startswith("--")
        ]
    return "\n".join(lines) + "\n"


def _commands() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return the commands by name: their help, and their options with help."""
    (subparsers,) = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    texts = {action.dest: action.help or "" for action in subparsers._choices_actions}
    return {
        name: (texts[name], [(o, action.help or "") for action in parser._actions for o in action.option_strings])
        for name, parser in subparsers.choices.items()
    }


def _quoted(text: str) -> str:
    return text.replace("'", "\\'")
