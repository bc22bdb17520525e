/* Memory behind a plain port: a request is taken where valid and ready meet, and stays as it is until then, unless an
 * error comes; what is read comes later with rvalid, in order. `wdata` and `strobe` go with the request. A request beyond memory is answered with `error`. */
#ifndef UACCEL_RTL_PORT_H
#define UACCEL_RTL_PORT_H

#include <deque>

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

template <class Ports, uint32_t BYTES, uint32_t LATENCY> class PortMemory : public Memory {
  public:
    PortMemory(Bench &bench, Ports ports) : bench_(bench), p_(ports), request_(bench, "valid") {}

    void reset() override
    {
        answers_.clear();
        request_.reset();
        p_.ready() = 0;
        p_.rvalid() = 0;
        p_.error() = 0;
    }

    void sample() override
    {
        ++now_;
        const uint64_t strobes = p_.write() ? p_.strobe() & ((1ull << BYTES) - 1) : 0;
        request_.sample(p_.valid(), p_.ready(), {p_.addr(), p_.write(), strobes, p_.wdata() & lanes(strobes)});
        if (p_.error()) {
            request_.reset();
        }
        if (p_.valid() && p_.ready()) {
            serve();
        }
    }

    void drive() override
    {
        p_.rvalid() = 0;
        p_.error() = 0;
        if (!answers_.empty() && answers_.front().due <= now_) {
            p_.rdata() = from_bytes<decltype(p_.rdata() + 0)>(answers_.front().bytes, BYTES);
            p_.rvalid() = answers_.front().read;
            p_.error() = !answers_.front().good;
            answers_.pop_front();
        }
        if (!p_.rvalid()) {
            spoil(bench_, p_.rdata(), 0xFF);
        }
        p_.ready() = bench_.takes(p_.valid() != 0, this, static_cast<uint32_t>(p_.addr()), BYTES, true);
    }

    void probe() override
    {
        Probe<PortMemory>(bench_, *this).look();
    }

    bool idle() const override
    {
        return answers_.empty();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("ready", 1, p_.ready());
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("valid", p_.valid());
        visit("write", p_.write());
        visit("addr", p_.addr());
        visit("wdata", p_.wdata());
    }

  private:
    struct Answer {
        uint64_t due;
        bool read, good;
        uint8_t bytes[BYTES];
    };

    void serve()
    {
        const uint32_t address = static_cast<uint32_t>(p_.addr()) - static_cast<uint32_t>(p_.addr()) % BYTES;
        const uint64_t earliest = now_ + LATENCY + bench_.disturbance.wait();
        const uint64_t due = answers_.empty() || answers_.back().due < earliest ? earliest : answers_.back().due;
        Answer answer = {due, !p_.write(), true, {0}};
        if (p_.write()) {
            to_bytes(p_.wdata(), answer.bytes, BYTES);
            answer.good = store_beat(bench_, address, answer.bytes, p_.strobe(), BYTES);
        } else {
            answer.good = load_beat(bench_, address, answer.bytes, BYTES);
        }
        if (answer.read || !answer.good) {
            answers_.push_back(answer);
        }
    }

    Bench &bench_;
    Ports p_;
    Channel request_;
    uint64_t now_ = 0;
    std::deque<Answer> answers_;
};

} // namespace uaccel_rtl

#endif
