"""The run judged with its files, and the one entry to opinions: `judgement.judge`."""
