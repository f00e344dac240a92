"""Taxi exercise 1, ride cleansing: keep the rides that begin and end in New York, and say which grid cells they join.

The smallest job there is: a filter and a map. It has no exchange, so a record never leaves the process that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from taxi_data import TaxiRide, clock, environment, grid_cell, in_new_york, parser, rides

from penstock.datastream import DataStream


def is_in_city(ride: TaxiRide) -> bool:
    """Whether both ends of a ride are in New York."""
    return in_new_york(ride.start_lon, ride.start_lat) and in_new_york(ride.end_lon, ride.end_lat)


def cleansed(stream: DataStream) -> DataStream:
    """The exercise: rides in the city only."""
    return stream.filter(is_in_city).name("rides in the city")


def with_cells(ride: TaxiRide) -> tuple[TaxiRide, int, int]:
    """A ride, and the cells of 100 m x 100 m it begins and ends in."""
    return ride, grid_cell(ride.start_lon, ride.start_lat), grid_cell(ride.end_lon, ride.end_lat)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints what it kept and what it dropped."""
    options = parser(__doc__, rides=2_000).parse_args(argv)
    env = environment(options.parallelism)
    begins = rides(env, options.rides).filter(lambda ride: ride.is_start).set_parallelism(1)
    kept = cleansed(begins).map(with_cells).collect_async()
    dropped = begins.filter(lambda ride: not is_in_city(ride)).collect_async()
    env.execute("ride cleansing")

    enriched = sorted(kept)
    print(f"{len(enriched):,} rides begin and end in New York. The first of them:\n")
    print(f"{'ride':>6}   {'begins':15} {'from cell':>10} {'to cell':>9}")
    for ride, start_cell, end_cell in enriched[:5]:
        print(f"{ride.ride_id:6}   {clock(ride.event_time)} {start_cell:10} {end_cell:9}")
    outside = sorted(dropped)
    print(f"\n{len(outside):,} do not:\n")
    for ride in outside[:5]:
        places = f"{ride.start_lon:.3f} {ride.start_lat:.3f} to {ride.end_lon:.3f} {ride.end_lat:.3f}"
        print(f"{ride.ride_id:6}   {clock(ride.event_time)}  {places}")
    if len(outside) > 5:
        print(f"   ... and {len(outside) - 5:,} more")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
