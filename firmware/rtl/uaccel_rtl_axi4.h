/* Memory behind AXI4: the RTL is the master. Bursts that increment, of at most 256 beats inside 4 KiB.
 *
 * A burst of reads begins LATENCY cycles after its address. Device constants may lie in a flash instead, which does one
 * burst after the other. The first word comes FIRST cycles later than at once, each further one NEXT cycles, and so does
 * the first where it is the word behind the last burst. FIRST 0: there is no flash. With a seed, addresses and data are
 * taken and given when it pleases, and bursts of different ids in any order. */
#ifndef UACCEL_RTL_AXI4_H
#define UACCEL_RTL_AXI4_H

#include <deque>

#include "uaccel_rtl.h"

namespace uaccel_rtl {

template <class Ports, uint32_t BYTES, uint32_t LATENCY, uint32_t FIRST = 0, uint32_t NEXT = 0>
class Axi4Memory : public Memory {
  public:
    Axi4Memory(Bench &bench, Ports ports) : bench_(bench), p_(ports) {}

    void reset() override
    {
        reads_.clear();
        writes_.clear();
        answers_.clear();
        behind_ = NOWHERE;
        p_.arready() = 0;
        p_.awready() = 0;
        p_.wready() = 0;
        p_.rvalid() = 0;
        p_.rlast() = 0;
        p_.bvalid() = 0;
    }

    void sample() override
    {
        ++now_;
        takes_read_ = p_.arvalid() && p_.arready();
        takes_write_ = p_.awvalid() && p_.awready();
        takes_data_ = p_.wvalid() && p_.wready();
        gave_data_ = p_.rvalid() && p_.rready();
        gave_answer_ = p_.bvalid() && p_.bready();
        if (takes_read_) {
            add(reads_, p_.arid(), p_.araddr(), p_.arlen(), p_.arsize(), p_.arburst());
        }
        if (takes_write_) {
            add(writes_, p_.awid(), p_.awaddr(), p_.awlen(), p_.awsize(), p_.awburst());
        }
        if (takes_data_) {
            take_data();
        }
    }

    void drive() override
    {
        if (gave_data_) {
            Burst &burst = reads_.front();
            if (--burst.beats == 0) {
                reads_.pop_front();
                choose();
            } else {
                burst.address += BYTES - burst.address % BYTES;
            }
            p_.rvalid() = 0;
        }
        if (!p_.rvalid() && !reads_.empty() && is_due(reads_.front()) && goes(reads_, true)) {
            give_data(reads_.front());
        }
        if (gave_answer_) {
            answers_.pop_front();
            p_.bvalid() = 0;
        }
        if (!p_.bvalid() && !answers_.empty() && answers_.front().due <= now_) {
            p_.bid() = static_cast<decltype(p_.bid() + 0)>(answers_.front().id);
            p_.bresp() = answers_.front().good ? 0 : 2;
            p_.bvalid() = 1;
        }
        p_.arready() = reads_.size() < DEPTH && bench_.disturbance.goes();
        p_.awready() = writes_.size() < DEPTH && bench_.disturbance.goes();
        p_.wready() = !writes_.empty() && goes(writes_, p_.wvalid() != 0);
    }

    bool idle() const override
    {
        return reads_.empty() && writes_.empty() && answers_.empty();
    }

  private:
    enum { DEPTH = 8, INCREMENT = 1 };
    static constexpr uint64_t NOWHERE = UINT64_MAX;

    struct Burst {
        uint32_t id, address, beats;
        uint64_t due;
        bool good;
        bool flash, begun;
    };

    bool goes(const std::deque<Burst> &bursts, bool offered)
    {
        return bench_.takes(offered, &bursts, bursts.front().address, BYTES, bursts.front().beats == 1);
    }

    void add(std::deque<Burst> &bursts, uint32_t id, uint32_t address, uint32_t length, uint32_t size, uint32_t kind)
    {
        const uint32_t beats = length + 1;
        if (1u << size != BYTES || kind != INCREMENT) {
            bench_.violates("a burst is not of the bus's full width, or does not increment");
        }
        if (address / 4096 != (address - address % BYTES + BYTES * beats - 1) / 4096) {
            bench_.violates("a burst crosses a border of 4 KiB");
        }
        const bool flash = FIRST != 0 && bench_.constant(address);
        const uint64_t due = now_ + (flash ? 0 : LATENCY) + bench_.disturbance.wait();
        bursts.push_back({id, address, beats, due, true, flash, false});
    }

    void take_data()
    {
        Burst &burst = writes_.front();
        uint8_t bytes[BYTES];
        to_bytes(p_.wdata(), bytes, BYTES);
        burst.good = store_beat(bench_, burst.address - burst.address % BYTES, bytes, p_.wstrb(), BYTES) && burst.good;
        burst.address += BYTES - burst.address % BYTES;
        const bool last = --burst.beats == 0;
        if (last != static_cast<bool>(p_.wlast())) {
            bench_.violates(last ? "the last beat of a write is not marked" : "a write ends before its last beat");
        }
        if (last) {
            answers_.push_back({burst.id, 0, 0, now_ + 1 + bench_.disturbance.wait(), burst.good, false, false});
            writes_.pop_front();
        }
    }

    /* The flash begins with a burst when those before it have gone. It reads a word ahead of one that waits. */
    bool is_due(Burst &burst)
    {
        if (burst.flash && !burst.begun && burst.due <= now_) {
            const uint64_t wait = burst.address / BYTES == behind_ ? NEXT : FIRST;
            const uint64_t asked = now_ + wait - 1, busy = gave_ + wait + 1;
            burst.begun = true;
            burst.due = asked > busy || behind_ == NOWHERE ? asked : busy;
        }
        return burst.due <= now_;
    }

    void give_data(Burst &burst)
    {
        if (burst.flash) {
            behind_ = burst.address / BYTES + 1;
            gave_ = now_;
            burst.due = now_ + NEXT + 1;
        }
        uint8_t bytes[BYTES];
        const bool good = load_beat(bench_, burst.address - burst.address % BYTES, bytes, BYTES);
        p_.rdata() = from_bytes<decltype(p_.rdata() + 0)>(bytes, BYTES);
        p_.rid() = static_cast<decltype(p_.rid() + 0)>(burst.id);
        p_.rresp() = good ? 0 : 2;
        p_.rlast() = burst.beats == 1;
        p_.rvalid() = 1;
    }

    /* With a seed any burst may come next that is the first of its id. */
    void choose()
    {
        if (!bench_.disturbance.wanted() || reads_.size() < 2) {
            return;
        }
        const size_t wanted = bench_.disturbance.next() % reads_.size();
        for (size_t i = 0; i < wanted; ++i) {
            if (reads_[i].id == reads_[wanted].id) {
                return;
            }
        }
        const Burst burst = reads_[wanted];
        reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(wanted));
        reads_.push_front(burst);
    }

    Bench &bench_;
    Ports p_;
    uint64_t now_ = 0;
    uint64_t behind_ = NOWHERE, gave_ = 0; /* the word behind the flash's last one, and when that was given */
    bool takes_read_ = false, takes_write_ = false, takes_data_ = false, gave_data_ = false, gave_answer_ = false;
    std::deque<Burst> reads_, writes_, answers_;
};

} // namespace uaccel_rtl

#endif
