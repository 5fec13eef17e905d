"""The promises of the queue, the turns and the workers' hosts, which are those of every store, on databases of SQL.

The functions are those of the tests on Redis. They run with the fixtures of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.test_queue import (  # noqa: F401  # pytest runs them
    test_a_put_that_is_repeated_happens_once_and_answers_the_same,
    test_a_run_counts_as_seen_the_requests_of_the_runs_since_a_moment,
    test_a_run_that_keeps_the_seen_requests_asks_only_its_start_requests_again,
    test_a_worker_that_leaves_gives_no_later_sign_of_life,
    test_requests_that_wait_stay_in_a_run_that_keeps_the_seen_ones,
    test_workers_exchange_the_state_of_the_spider,
)
from tests.cluster.test_shared_queue import (  # noqa: F401  # pytest runs them
    test_a_host_for_which_nobody_waits_is_given_back_once_nothing_of_it_is_out,
    test_a_host_is_of_one_worker_until_nothing_of_it_is_left,
    test_a_host_is_the_same_with_a_dot_behind_its_name,
    test_a_host_that_is_given_back_while_more_of_it_is_asked_for_goes_to_others,
    test_a_host_with_a_request_that_is_out_is_given_back_once_that_is_done,
    test_a_paused_crawl_hands_nothing_out_and_an_ended_one_begins_no_more,
    test_a_request_that_cannot_be_read_is_set_aside,
    test_a_request_that_comes_back_does_not_keep_its_host_from_leaving,
    test_a_request_that_kills_its_readers_takes_no_other_one_with_it,
    test_a_request_with_more_than_plain_values_is_named,
    test_a_worker_that_has_hosts_leases_no_more_while_too_many_requests_wait,
    test_hosts_are_shared_out_evenly_and_a_worker_that_joins_gets_as_many,
    test_hosts_that_the_others_have_no_room_for_go_to_a_worker_with_its_share,
    test_requests_whose_items_are_not_stored_yet_hold_up_no_others_and_keep_their_host,
    test_what_is_done_and_not_told_yet_goes_out_no_more,
)
from tests.cluster.test_turns import (  # noqa: F401  # pytest runs them
    test_a_grant_that_nobody_takes_is_given_back,
    test_a_penalty_holds_for_all_and_grows,
    test_a_worker_that_was_taken_for_dead_has_its_request_in_flight_when_it_goes_on,
    test_an_answer_that_took_long_is_not_used,
    test_turns_are_granted_as_the_pace_file_grants_them,
    test_what_ends_while_it_is_told_to_be_in_flight_has_ended,
    test_what_never_went_out_counts_as_nothing,
    test_what_the_owner_does_not_know_of_is_settled_when_it_asks,
)

if TYPE_CHECKING:
    from tests.cluster.sql.conftest import Servers
    from tests.sql_server import PostgresServer, SqliteFile


@pytest.fixture(
    params=[
        "sqlite",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("postgresql", "oldest")),
    ]
)
def server(request: pytest.FixtureRequest, servers: Servers) -> SqliteFile | PostgresServer:
    """Without --all, the other tests of this folder alone ask PostgreSQL."""
    return servers.database(request.param)
