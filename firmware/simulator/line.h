/* The UART's line: standard input and output. Bytes come in while the core sleeps, so that what a client sends meanwhile
 * disturbs no measurement. */
#ifndef UACCEL_SIMULATOR_LINE_H
#define UACCEL_SIMULATOR_LINE_H

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace uaccel {

class Line {
public:
    static constexpr uint32_t kNone = 0x100;

    bool has_arrived() const
    {
        return at_ < arrived_.size();
    }

    uint32_t take()
    {
        return has_arrived() ? static_cast<uint8_t>(arrived_[at_++]) : kNone;
    }

    void send(uint8_t byte)
    {
        sent_.push_back(static_cast<char>(byte));
        if (sent_.size() >= kMost) {
            flush();
        }
    }

    void flush()
    {
        size_t done = 0;
        while (done < sent_.size()) {
            const ssize_t count = write(STDOUT_FILENO, sent_.data() + done, sent_.size() - done);
            if (count <= 0) {
                std::exit(0); /* nobody listens any more */
            }
            done += static_cast<size_t>(count);
        }
        sent_.clear();
    }

    /* Wait for bytes; the process ends with its input. */
    void wait()
    {
        char bytes[4096];
        flush();
        const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count <= 0) {
            std::exit(0);
        }
        arrived_.assign(bytes, static_cast<size_t>(count));
        at_ = 0;
    }

private:
    static constexpr size_t kMost = 4096;
    std::string arrived_, sent_;
    size_t at_ = 0;
};

} // namespace uaccel

#endif
