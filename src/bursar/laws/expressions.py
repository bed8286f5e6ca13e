"""Formulas: parsing, simplification, refitting of constants, and growth.

The parser accepts only numbers, variables, + − × ÷, powers, sqrt, log, exp and abs, and runs no code, since a law may
come from a file of someone else.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy  # type: ignore[import-untyped]
from scipy.optimize import leastsq

from bursar.errors import DataError
from bursar.ragged import FloatArray

LATEX = {"n": "n", "n_other": "n_{other}", "tasks": "T", "ami": "\\mathrm{AMI}", "alpha": "\\alpha"}
ABSURD = 1e3  # residual of undefined values while constants are fitted
LONGEST = 4000  # characters of a formula
MOST_STEPS = 100  # of fitting constants

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": sympy.sqrt,
    "log": sympy.log,
    "exp": sympy.exp,
    "abs": sympy.Abs,
    "Abs": sympy.Abs,
    "sqrt_abs": lambda x: sympy.sqrt(sympy.Abs(x)),
    "log_abs": lambda x: sympy.log(sympy.Abs(x)),
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def symbol(name: str) -> Any:
    """A variable. All are assumed to be positive, so that √(x·y) is √x·√y."""
    return sympy.Symbol(name, positive=True)


def constant(place: int) -> Any:
    """A constant to fit."""
    return sympy.Symbol(f"c{place}", real=True)


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula for the score: its form, with constants ``c0``, ``c1``, …, and their values."""

    form: Any  # a sympy expression in the variables and constants
    constants: tuple[float, ...]
    variables: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, variables: Sequence[str]) -> Formula:
        """Parse text; each number except for exponents becomes a constant."""
        return cls.of(parse(text, variables), variables)

    @classmethod
    def of(cls, expression: Any, variables: Sequence[str]) -> Formula:
        """Take the constants out of a sympy expression."""
        form, constants = _constants_apart(simplified(expression))
        return cls(form, constants, tuple(variables))

    @cached_property
    def expression(self) -> Any:
        """The sympy expression with numbers for constants."""
        numbers = {constant(at): sympy.Float(value, 17) for at, value in enumerate(self.constants)}
        return self.form.xreplace(numbers)

    @cached_property
    def size(self) -> int:
        """The number of operators, functions, variables and constants; exponents are not counted."""
        return _size(self.form)

    @property
    def text(self) -> str:
        """Readable text, with four digits."""
        return str(rounded(self.expression))

    @property
    def exact(self) -> str:
        """Text with all digits, for ``parse``."""
        return str(self.expression)

    @property
    def latex(self) -> str:
        names = {symbol(name): LATEX[name] for name in self.variables if name in LATEX}
        return str(sympy.latex(rounded(self.expression), symbol_names=names))

    def predict(self, X: FloatArray, constants: Sequence[float] | FloatArray | None = None) -> FloatArray:
        """The values for rows: (rows, variables) to (rows,); nan where undefined."""
        function = _compiled(self.form, self.variables, len(self.constants))
        with np.errstate(all="ignore"):
            found = function(X.T.astype(complex), self.constants if constants is None else constants)
            found = np.broadcast_to(np.asarray(found, dtype=complex), (len(X),))
            real: FloatArray = np.where(np.abs(found.imag) <= 1e-9 * (1 + np.abs(found.real)), found.real, np.nan)
        return np.where(np.isfinite(real), real, np.nan)

    def refitted(self, X: FloatArray, y: FloatArray) -> Formula:
        """The same form with constants fitted by least squares, starting from the current ones."""
        if not self.constants or len(y) < len(self.constants):
            return self
        start = np.array(self.constants)

        def residuals(constants: FloatArray) -> FloatArray:
            return np.nan_to_num(self.predict(X, constants) - y, nan=ABSURD).clip(-ABSURD, ABSURD)

        found = least_squares(residuals, start, scale=np.maximum(np.abs(start), 1e-12))
        if not np.isfinite(found).all() or (residuals(found) ** 2).sum() > (residuals(start) ** 2).sum():
            return self
        return Formula(self.form, tuple(found.tolist()), self.variables)

    def error(self, X: FloatArray, y: FloatArray) -> float:
        """Mean squared error; infinite if undefined for a row."""
        misses = self.predict(X) - y
        return float(np.mean(misses**2)) if np.isfinite(misses).all() else float("inf")


def least_squares(
    residuals: Callable[[FloatArray], FloatArray], start: FloatArray, scale: FloatArray | None = None
) -> FloatArray:
    """Minimise the sum of squared residuals from a start, by the Levenberg–Marquardt method of MINPACK."""
    tolerance = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-8)
    steps, diagonal = MOST_STEPS * (len(start) + 1), None if scale is None else 1 / scale
    # With the full output there are no warnings.
    return np.asarray(leastsq(residuals, start, diag=diagonal, maxfev=steps, full_output=True, **tolerance)[0])


@lru_cache(maxsize=512)
def _compiled(form: Any, variables: tuple[str, ...], constants: int) -> Callable[[Any, Any], Any]:
    inputs, free = [symbol(name) for name in variables], [constant(at) for at in range(constants)]
    made: Callable[[Any, Any], Any] = sympy.lambdify([inputs, free], form, modules="numpy")
    return made


# -- reading ----------------------------------------------------------------------------------------------------------
def parse(text: str, variables: Sequence[str]) -> Any:
    """Parse a formula in these variables into a sympy expression."""
    names = {name: symbol(name) for name in variables}
    short = text if len(text) <= 80 else f"{text[:77]}…"
    try:
        if len(text) > LONGEST:
            raise ValueError(f"it is longer than {LONGEST} characters")
        return _read(ast.parse(text, mode="eval").body, names)
    except SyntaxError:
        raise DataError(f'the formula "{short}" cannot be read') from None
    except (ValueError, TypeError, RecursionError, ArithmeticError) as wrong:
        raise DataError(f'the formula "{short}" cannot be read: {wrong}') from None


def _read(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return sympy.Float(value, 17)
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"there is no variable {name!r}, only {', '.join(names)}")
            return names[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
            return -_read(inner, names) if isinstance(sign, ast.USub) else _read(inner, names)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _read(left, names) ** _exponent(_read(right, names))
        case ast.BinOp(op=sign, left=left, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_read(left, names), _read(right, names))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
            if name not in _FUNCTIONS:
                raise ValueError(f"there is no function {name!r}")
            return _FUNCTIONS[name](*(_read(argument, names) for argument in given))
    raise ValueError("it may hold numbers, variables, + - * / **, sqrt, log, exp and abs")


def _exponent(value: Any) -> Any:
    """Turn an exponent such as 0.5 into a fraction."""
    if not value.is_Float:
        return value
    near = Fraction(float(value)).limit_denominator(16)
    return sympy.Rational(near.numerator, near.denominator) if abs(float(near) - float(value)) < 1e-12 else value


# -- simplifying ------------------------------------------------------------------------------------------------------
def simplified(expression: Any) -> Any:
    """Move factors out of roots, logarithms and products, for fewer constants: 3√(4n + 8T) becomes 6√(n + 2T)."""
    if expression.is_Atom:
        return expression
    args = [simplified(argument) for argument in expression.args]
    if expression.is_Pow and expression.exp.is_Rational:
        base, power = args[0], expression.exp
        factor = _factor(base)
        return factor**power * _divided(base, factor) ** power if base.is_Add else base**power
    if isinstance(expression, sympy.log):
        inner = sympy.expand_log(sympy.log(args[0]))
        if isinstance(inner, sympy.log) and inner.args[0].is_Add:
            factor = _factor(inner.args[0])
            return sympy.log(factor) + sympy.log(_divided(inner.args[0], factor))
        return inner
    if isinstance(expression, sympy.exp):
        inner, free = args[0], args[0].free_symbols
        alone, rest = inner.as_independent(*free, as_Add=True) if free else (0, inner)
        return sympy.exp(alone) * sympy.exp(rest)
    if expression.is_Mul and sum(argument.is_Add for argument in args) and len(args) > 2:
        factors = [_factor(argument) for argument in args]
        return sympy.Mul(*factors, *(_divided(argument, f) for argument, f in zip(args, factors, strict=True)))
    return expression.func(*args)


def _factor(total: Any) -> Any:
    """The absolute value of the first coefficient in a sum."""
    if not total.is_Add:
        return sympy.Integer(1)
    found = [abs(term.as_coeff_Mul()[0]) for term in total.as_ordered_terms() if term.free_symbols]
    return found[0] if found and found[0] > 0 else sympy.Integer(1)


def _divided(total: Any, factor: Any) -> Any:
    """Divide a sum by a number, term by term."""
    if factor == 1:
        return total
    parts = [(term.as_coeff_Mul()[0] / factor, term.as_coeff_Mul()[1]) for term in total.args]
    return sympy.Add(*(rest if abs(number - 1) < 1e-15 else number * rest for number, rest in parts))


def rounded(expression: Any, digits: int = 4) -> Any:
    """Round all numbers to some digits."""
    floats = {number: sympy.Float(number, digits) for number in expression.atoms(sympy.Float)}
    return expression.xreplace(floats)


def without_offset(expression: Any) -> Any | None:
    """The expression without its additive constant; ``None`` if it has none."""
    alone, rest = expression.as_independent(*expression.free_symbols, as_Add=True)
    return rest if expression.is_Add and alone != 0 and rest.free_symbols else None


def _constants_apart(expression: Any) -> tuple[Any, tuple[float, ...]]:
    found: list[float] = []

    def apart(node: Any) -> Any:
        if node.is_Float:
            found.append(float(node))
            return constant(len(found) - 1)
        if node.is_Atom:
            return node
        if node.is_Pow:
            return apart(node.base) ** (apart(node.exp) if not node.exp.is_Rational else node.exp)
        return node.func(*(apart(argument) for argument in node.args))

    form = apart(expression)  # -1 and whole numbers from counting equal terms stay
    return form, tuple(found)


def _size(node: Any) -> int:
    if node.is_Atom:
        return 0 if node == -1 else 1
    if node.is_Pow:
        return 1 + _size(node.base) + (0 if node.exp.is_Rational else _size(node.exp))
    return sum(_size(argument) for argument in node.args) + max(1, len(node.args) - 1)


# -- growth -----------------------------------------------------------------------------------------------------------
def growth(formula: Formula, name: str, others: Mapping[str, float], *, at_zero: bool = False) -> str | None:
    """How a formula grows with one variable, such as "sqrt(n)", for large values or near 0; the others are held.

    It is ``None`` if the rules do not decide. They need no limits: in a sum the fastest term counts, in a product
    orders add, a root halves them.
    """
    held = {symbol(other): sympy.Float(value, 17) for other, value in others.items() if other != name}
    x = symbol(name)
    expression = formula.expression.xreplace(held)
    found = _order(expression.subs(x, 1 / x) if at_zero else expression, x)
    if found is None or not np.isfinite(found).all():
        return None
    _, power, logs = found
    terms = (name, -power if at_zero else power), (f"log({name})", logs)
    forms = {0: "", 1: "{0}", 0.5: "sqrt({0})"}
    return " ".join(filter(None, (forms.get(e, "{0}^{1:g}").format(x, e) for x, e in terms))) or "a constant"


LeadingTerm = tuple[float, float, float]  # coefficient, power, power of the logarithm


def _order(node: Any, x: Any) -> LeadingTerm | None:
    """The leading term of an expression as x goes to infinity."""
    if not node.has(x):
        value = complex(node)
        return (value.real, 0.0, 0.0) if abs(value.imag) < 1e-12 and np.isfinite(value.real) else None
    if node == x:
        return 1.0, 1.0, 0.0
    parts = [_order(argument, x) for argument in node.args]
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    if node.is_Add:
        return _sum(known)
    if node.is_Mul:
        return float(np.prod([c for c, _, _ in known])), sum(p for _, p, _ in known), sum(q for _, _, q in known)
    if node.is_Pow and node.exp.is_number:
        (c, p, q), e = known[0], float(node.exp)
        return None if c == 0 or (c < 0 and e != int(e)) else (c**e, p * e, q * e)
    return _of_function(node, known[0])


def _of_function(node: Any, inner: LeadingTerm) -> LeadingTerm | None:
    c, p, q = inner
    if isinstance(node, sympy.Abs):
        return abs(c), p, q
    if isinstance(node, sympy.log) and c > 0 and np.isfinite(p):
        if p:
            return p, 0.0, 1.0
        return (float(np.log(c)), 0.0, 0.0) if q == 0 and c != 1 else None
    if isinstance(node, sympy.exp):
        if (p, q) == (0, 0):
            return float(np.exp(c)), 0.0, 0.0
        if (p, q) < (0, 0):
            return 1.0, 0.0, 0.0
        return (1.0, -np.inf, 0.0) if c < 0 < p else None  # vanishes faster than any power
    return None


def _sum(parts: list[LeadingTerm]) -> LeadingTerm | None:
    fastest = max((p, q) for c, p, q in parts if c != 0) if any(c for c, _, _ in parts) else (0.0, 0.0)
    leading = [c for c, p, q in parts if (p, q) == fastest]
    total = sum(leading)
    if abs(total) <= 1e-12 * sum(abs(c) for c in leading):  # the leading terms cancel
        return None
    return total, *fastest


def slope(formula: Formula, name: str, point: Mapping[str, float]) -> float:
    """The local exponent of a variable at a point."""
    low, high = dict(point), dict(point)
    low[name], high[name] = point[name] / 1.01, point[name] * 1.01
    X = np.array([[values[v] for v in formula.variables] for values in (low, high)])
    a, b = formula.predict(X)
    return float(np.log(b / a) / np.log(high[name] / low[name])) if a > 0 and b > 0 else float("nan")
