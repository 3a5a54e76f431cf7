"""`htfi bench link`: every way of placing a request over a link of many round trips, beside the planner's choice."""

from pathlib import Path

import click

from htfi import models
from htfi.apps.bench.link_runs import Bench, Manner, measure
from htfi.apps.bench.link_stage import open_stage
from statistics import median


@click.command("link")
@click.option("--rtt", default="0,5,20,50,100,200")
@click.option("--jitter", default=0.05)
@click.option("--runs", default=4)
def command(rtt: str, jitter: float, runs: int) -> None:
    with open_stage(models.TARGET) as stage, stage.edge() as edge:
        bench = Bench.on(stage, edge, 5_000_000)
        for rtt_ms in map(float, rtt.split(",")):
            found = measure(bench, rtt_ms, jitter, runs, lambda: None)
            for kind, of in found.items():
                print(
                    rtt_ms,
                    kind,
                    " ".join(
                        f"{m.value}:{median(r[m].total_ms for r in of):.1f}/{median(r[m].first_ms for r in of):.1f}"
                        for m in of[0]
                    ),
                    "unlike",
                    sum(r[m].tokens != r[Manner.PLAIN].tokens for r in of for m in r),
                    "n",
                    median(len(r[Manner.PLAIN].tokens) for r in of),
                    [r[Manner.PLANNED].chosen for r in of],
                )
                d = edge.places.newest
        print(edge.author.traffic)
