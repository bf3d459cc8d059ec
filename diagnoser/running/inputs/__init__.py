"""What is given beside the recordings: names of files, facts of a run, a rank map, snapshots."""
