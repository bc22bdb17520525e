/* The channels of AXI4 that write. Memory changes when the answer to a burst is given, and not before.
 *
 * Without a seed data is taken behind its address. With one, memory now and then takes an address only when it has seen
 * data, data before its address, or either only once it is offered: a master that waits for one before it offers the
 * other stands still. */
#ifndef UACCEL_RTL_AXI4_WRITE_H
#define UACCEL_RTL_AXI4_WRITE_H

#include <deque>
#include <vector>

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

/* An address that was taken, of reads or writes. */
template <uint32_t BYTES>
void check_burst(Bench &bench, uint64_t address, uint64_t length, uint64_t size, uint64_t kind)
{
    constexpr uint64_t INCREMENT = 1;
    const uint64_t first = address - address % BYTES;
    if (1u << size != BYTES || kind != INCREMENT) {
        bench.violates("a burst is not of the bus's full width, or does not increment");
    }
    if (address / 4096 != (first + BYTES * (length + 1) - 1) / 4096) {
        bench.violates("a burst crosses a border of 4 KiB");
    }
}

template <class Ports, uint32_t BYTES> class Axi4Writes {
  public:
    Axi4Writes(Bench &bench, Ports &ports) : bench_(bench), p_(ports), aw_(bench, "AWVALID"), w_(bench, "WVALID") {}

    void reset()
    {
        bursts_.clear();
        early_.clear();
        answers_.clear();
        aw_.reset();
        w_.reset();
        p_.awready() = 0;
        p_.wready() = 0;
        p_.bvalid() = 0;
    }

    void sample(uint64_t now)
    {
        const uint64_t strobes = p_.wstrb() & ((1ull << BYTES) - 1);
        aw_.sample(p_.awvalid(), p_.awready(), {p_.awid(), p_.awaddr(), p_.awlen(), p_.awsize(), p_.awburst()});
        w_.sample(p_.wvalid(), p_.wready(), {p_.wdata() & lanes(strobes), strobes, p_.wlast()});
        asks_ = p_.awvalid() && !p_.awready();
        offers_ = p_.wvalid() && !p_.wready();
        gave_answer_ = p_.bvalid() && p_.bready();
        if (p_.awvalid() && p_.awready()) {
            check_burst<BYTES>(bench_, p_.awaddr(), p_.awlen(), p_.awsize(), p_.awburst());
            const uint32_t address = static_cast<uint32_t>(p_.awaddr());
            bursts_.push_back({static_cast<uint32_t>(p_.awid()), address, static_cast<uint32_t>(p_.awlen()) + 1, 0, {}});
        }
        if (p_.wvalid() && p_.wready()) {
            early_.push_back({static_cast<uint64_t>(p_.wdata()), strobes, p_.wlast() != 0});
        }
        while (!early_.empty() && !bursts_.empty()) {
            take_data(now);
        }
        stands_ = asks_ && way_ == DATA_FIRST && !offers_ && early_.empty() ? stands_ + 1 : 0;
        if (stands_ == PATIENCE / 4) {
            bench_.violates("data of a write waits until its address is taken, which need not be before there is data");
        }
    }

    void drive(uint64_t now)
    {
        if (gave_answer_) {
            answers_.pop_front();
            p_.bvalid() = 0;
        }
        if (!p_.bvalid() && !answers_.empty() && answers_.front().due <= now) {
            p_.bid() = static_cast<decltype(p_.bid() + 0)>(answers_.front().id);
            p_.bresp() = store(answers_.front()) ? 0 : bench_.refusal();
            p_.bvalid() = 1;
        } else if (!p_.bvalid()) {
            spoil(bench_, p_.bresp(), 3);
        }
        if (stands_ == 0 && bench_.disturbance.way(64) == 1) {
            way_ = bench_.shares() ? 0 : bench_.disturbance.way(WAYS);
        }
        p_.awready() = bursts_.size() < DEPTH && takes_address() && bench_.disturbance.goes();
        p_.wready() = takes_data();
    }

    bool idle() const
    {
        return bursts_.empty() && early_.empty() && answers_.empty();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("AWREADY", 1, p_.awready());
        visit("WREADY", 1, p_.wready());
        visit("BVALID", 1, p_.bvalid());
        visit("BID", 1, p_.bid());
        visit("BRESP", 3, p_.bresp());
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("AWVALID", p_.awvalid());
        visit("AWADDR", p_.awaddr());
        visit("AWLEN", p_.awlen());
        visit("AWID", p_.awid());
        visit("WVALID", p_.wvalid());
        visit("WDATA", p_.wdata());
        visit("WSTRB", p_.wstrb());
        visit("WLAST", p_.wlast());
        visit("BREADY", p_.bready());
    }

  private:
    enum { DEPTH = 8, EARLY = 16 };
    enum { ADDRESS_FIRST, DATA_FIRST, ANY, LATE, WAYS };

    struct Beat {
        uint64_t data, strobes;
        bool last;
    };

    struct Burst {
        uint32_t id, address, beats;
        uint64_t due;
        std::vector<Beat> taken;
    };

    bool takes_address() const
    {
        return way_ == DATA_FIRST ? offers_ || !early_.empty() : way_ != LATE || asks_;
    }

    bool takes_data()
    {
        if (!bursts_.empty()) {
            const Burst &burst = bursts_.front();
            const uint32_t done = static_cast<uint32_t>(burst.taken.size());
            const uint32_t at = burst.address + BYTES * done - (done == 0 ? 0 : burst.address % BYTES);
            const bool goes = bench_.takes(p_.wvalid() != 0, &bursts_, at, BYTES, done + 1 == burst.beats);
            return goes && (way_ != LATE || offers_);
        }
        return (way_ == DATA_FIRST || way_ == ANY) && early_.size() < EARLY && bench_.disturbance.goes();
    }

    void take_data(uint64_t now)
    {
        Burst &burst = bursts_.front();
        const Beat beat = early_.front();
        early_.pop_front();
        if (burst.taken.empty() && (beat.strobes & ((1u << burst.address % BYTES) - 1)) != 0) {
            bench_.violates("a write has bytes before its address");
        }
        burst.taken.push_back(beat);
        const bool last = burst.taken.size() == burst.beats;
        if (last != beat.last) {
            bench_.violates(last ? "the last beat of a write is not marked" : "a write ends before its last beat");
        }
        if (last) {
            burst.due = now + 1 + bench_.disturbance.wait();
            answers_.push_back(burst);
            bursts_.pop_front();
        }
    }

    bool store(const Burst &burst)
    {
        bool good = true;
        uint32_t address = burst.address - burst.address % BYTES;
        for (const Beat &beat : burst.taken) {
            uint8_t bytes[BYTES];
            to_bytes(beat.data, bytes, BYTES);
            good = store_beat(bench_, address, bytes, beat.strobes, BYTES) && good;
            address += BYTES;
        }
        return good;
    }

    Bench &bench_;
    Ports &p_;
    Channel aw_, w_;
    uint32_t way_ = ADDRESS_FIRST, stands_ = 0;
    bool asks_ = false, offers_ = false, gave_answer_ = false;
    std::deque<Burst> bursts_, answers_; /* that wait for data; whose data has come */
    std::deque<Beat> early_;             /* that came before their address */
};

} // namespace uaccel_rtl

#endif
