"""The distinct hosts of a batch, and each row's place among them."""

from crawlguide.core.kernels import I32, I64, kernel, one_i64


@kernel(one_i64(I32, I32, I64, I64))
def join(hosts, place, numbers, mine):
    """Distinct hosts in the order of their first row, and the number of each row's host among them.

    `place` is a column of zeros over all hosts, and is left so. Returns how many distinct hosts there are.
    """
    count = 0
    for row in range(len(hosts)):
        host = hosts[row]
        if place[host] == 0:
            numbers[count] = host
            count += 1
            place[host] = count
        mine[row] = place[host] - 1
    for number in range(count):
        place[numbers[number]] = 0
    return count
