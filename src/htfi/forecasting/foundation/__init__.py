"""What models of scaled returns say, turned into quantiles of log returns. Trajectory experts call it."""
