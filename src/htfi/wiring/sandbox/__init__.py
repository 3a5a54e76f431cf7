"""Opens, tries and promotes candidates: joins decisions with processes, history and the governance log."""
