import pickle

import pytest

from penstock.common import Types
from penstock.common.errors import InvalidProgramError
from penstock.core.output_tag import OutputTag
from penstock.core.time_domain import TimeDomain
from penstock.core.timerservice import TimerService


def test_tags_with_the_same_id_are_the_same_output():
    assert OutputTag("late", Types.INT()) == OutputTag("late")
    assert len({OutputTag("late"), OutputTag("late"), OutputTag("other")}) == 2
    assert OutputTag("late") != "late"


@pytest.mark.parametrize("tag_id", ["", None, 5])
def test_empty_ids_and_ids_that_are_no_strings_are_refused(tag_id):
    with pytest.raises(InvalidProgramError, match="OutputTag"):
        OutputTag(tag_id)


def test_a_list_of_types_is_a_row_type():
    assert OutputTag("a", [Types.INT(), Types.STRING()]).type_info == Types.ROW([Types.INT(), Types.STRING()])


def test_tags_survive_pickling_with_their_type():
    tag = pickle.loads(pickle.dumps(OutputTag("a", Types.INT())))
    assert (tag, tag.type_info, repr(tag)) == (OutputTag("a"), Types.INT(), "OutputTag('a')")


def test_there_are_two_time_domains():
    assert [domain.name for domain in TimeDomain] == ["EVENT_TIME", "PROCESSING_TIME"]


def test_timer_service_is_a_contract():
    assert len(TimerService.__abstractmethods__) == 6
