/* The pins of examples/ulx3s, with the serial line at stdin and stdout. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <deque>

#include "Vulx3s.h"
#include "verilated.h"

static const int kBit = CLOCKS_PER_BIT * (HALF ? 2 : 1); /* of the oscillator */

int main()
{
    Vulx3s chip;
    std::deque<uint8_t> coming;
    uint64_t cycle = 0, begun = 0, heard = 0;
    int sent = -1, got = -1, frame = 0;
    uint8_t byte = 0;
    for (chip.ftdi_txd = 1;; ++cycle) {
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
            chip.ftdi_txd = sent < 10 ? frame >> sent & 1 : 1;
            sent = sent < 12 ? sent : -1;
        }
        chip.clk_25mhz = 1;
        chip.eval();
        chip.clk_25mhz = 0;
        chip.eval();
        if (got < 0 && !chip.ftdi_rxd) {
            got = 0;
            heard = cycle + kBit + kBit / 2;
        } else if (got >= 0 && cycle == heard) {
            if (got == 8) {
                if (!chip.ftdi_rxd || write(1, &byte, 1) != 1) {
                    return 3; /* a byte without its stop bit */
                }
                got = -1;
            } else {
                byte = uint8_t(byte >> 1 | chip.ftdi_rxd << 7);
                got++;
                heard += kBit;
            }
        }
    }
}
