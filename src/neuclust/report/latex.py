"""Plain LaTeX: text it prints as it stands, and tabulars that compile without any package."""

from collections.abc import Iterable, Sequence

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\ldots{}", "γ": r"$\gamma$", "λ": r"$\lambda$",
}  # fmt: skip


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands; what its plain fonts lack is named by its code point."""
    return "".join(map(_letter, text))


def _letter(letter: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter.isspace():
        return " "
    return letter if " " <= letter <= "~" else f"(U+{ord(letter):04X})"


def tabular(columns: str, rows: Iterable[Sequence[str]], notes: Iterable[str]) -> str:
    """A `tabular` whose first row holds the headings; notes stand before it as comments of one line each."""
    head, *lines = [" & ".join(cells) + r" \\" for cells in rows]
    comments = [f"% {' '.join(note.split())}" for note in notes]
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([*comments, begin, r"\hline", head, r"\hline", *lines, r"\hline", end, ""])
