"""Whether advice holds once it is followed: cures and plans of random configurations, judged again."""
