"""From trained policies to published numbers: rollouts, scores, statistics, results on disk, figures, the report."""
