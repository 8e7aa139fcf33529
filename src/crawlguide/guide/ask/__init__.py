"""How an ask walks: intake, gather, predict, score, filter, lease, advice."""
