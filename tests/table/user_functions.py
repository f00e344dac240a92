"""Functions that CREATE FUNCTION imports."""

from penstock.table.udf import AggregateFunction, ScalarFunction, udf, udtf

PREFIX = "tests.table.user_functions"


@udf(result_type="BIGINT")
def twice(number):
    return None if number is None else 2 * number


@udtf(result_types=["STRING", "INT"])
def words(text):
    for word in (text or "").split():
        yield word, len(word)


class Shout(ScalarFunction):
    def eval(self, text):
        return text.upper() + "!"


shout = udf(Shout(), result_type="STRING")


class Total(AggregateFunction):
    """A sum that can take rows away."""

    def create_accumulator(self):
        return [0]

    def accumulate(self, accumulator, number):
        accumulator[0] += number or 0

    def retract(self, accumulator, number):
        accumulator[0] -= number or 0

    def merge(self, accumulator, accumulators):
        for other in accumulators:
            accumulator[0] += other[0]

    def get_value(self, accumulator):
        return accumulator[0]

    def get_result_type(self):
        return "BIGINT"

    def get_accumulator_type(self):
        return "ARRAY<BIGINT>"
