"""An outside world small enough to compare: each part satisfies the protocol that the jobs see."""
