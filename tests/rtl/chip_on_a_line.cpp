/* The chip of examples/ulx3s, with its serial line at stdin and stdout. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <deque>

#include "Vchip.h"
#include "verilated.h"

static const int kBit = CLOCKS_PER_BIT;

int main()
{
    Vchip chip;
    std::deque<uint8_t> coming;
    uint64_t cycle = 0, begun = 0, heard = 0;
    int sent = -1, got = -1, frame = 0;
    uint8_t byte = 0;
    for (chip.rx = 1;; ++cycle) {
        if ((cycle & 0x3FF) == 0) {
            pollfd input = {0, POLLIN, 0};
            uint8_t some[256];
            if (poll(&input, 1, 0) > 0) {
                const ssize_t count = read(0, some, sizeof some);
                if (count <= 0) {
                    return 0;
                }
                coming.insert(coming.end(), some, some + count);
            }
        }
        if (sent < 0 && !coming.empty()) {
            frame = coming.front() << 1 | 0x200;
            coming.pop_front();
            sent = 0;
            begun = cycle;
        }
        if (sent >= 0) {
            sent = int((cycle - begun) / kBit);
            chip.rx = sent < 10 ? frame >> sent & 1 : 1;
            sent = sent < 12 ? sent : -1;
        }
        chip.clk = 1;
        chip.eval();
        chip.clk = 0;
        chip.eval();
        if (got < 0 && !chip.tx) {
            got = 0;
            heard = cycle + kBit + kBit / 2;
        } else if (got >= 0 && cycle == heard) {
            if (got == 8) {
                if (!chip.tx || write(1, &byte, 1) != 1) {
                    return 3; /* a byte without its stop bit */
                }
                got = -1;
            } else {
                byte = uint8_t(byte >> 1 | chip.tx << 7);
                got++;
                heard += kBit;
            }
        }
    }
}
