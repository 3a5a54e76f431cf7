"""`htfi bench link`: an edge and a cloud over links of many round trips."""
