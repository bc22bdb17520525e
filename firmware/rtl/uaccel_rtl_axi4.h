/* Memory behind AXI4: the RTL is the master. Bursts that increment, of at most 256 beats inside 4 KiB.
 *
 * A burst of reads begins LATENCY cycles after its address. Device constants may lie in a flash instead, which does one
 * burst after the other. The first word comes FIRST cycles later than at once, each further one NEXT cycles, and so does
 * the first where it is the word behind the last burst. FIRST 0: there is no flash. With a seed, addresses and data are
 * taken and given when it pleases and in any order that AXI4 allows (uaccel_rtl_axi4_write.h), and beats of different
 * ids take turns. */
#ifndef UACCEL_RTL_AXI4_H
#define UACCEL_RTL_AXI4_H

#include "uaccel_rtl_axi4_write.h"

namespace uaccel_rtl {

template <class Ports, uint32_t BYTES, uint32_t LATENCY, uint32_t FIRST = 0, uint32_t NEXT = 0>
class Axi4Memory : public Memory {
  public:
    Axi4Memory(Bench &bench, Ports ports) : bench_(bench), p_(ports), writes_(bench, p_), ar_(bench, "ARVALID") {}

    void reset() override
    {
        reads_.clear();
        writes_.reset();
        ar_.reset();
        behind_ = NOWHERE;
        p_.arready() = 0;
        p_.rvalid() = 0;
        p_.rlast() = 0;
    }

    void sample() override
    {
        ++now_;
        writes_.sample(now_);
        ar_.sample(p_.arvalid(), p_.arready(), {p_.arid(), p_.araddr(), p_.arlen(), p_.arsize(), p_.arburst()});
        gave_data_ = p_.rvalid() && p_.rready();
        waits_ = p_.arvalid() && !p_.arready();
        if (p_.arvalid() && p_.arready()) {
            check_burst<BYTES>(bench_, p_.araddr(), p_.arlen(), p_.arsize(), p_.arburst());
            const bool flash = FIRST != 0 && bench_.constant(p_.araddr());
            const uint64_t due = now_ + (flash ? 0 : LATENCY) + bench_.disturbance.wait();
            const uint32_t id = static_cast<uint32_t>(p_.arid()), address = static_cast<uint32_t>(p_.araddr());
            reads_.push_back({id, address, static_cast<uint32_t>(p_.arlen()) + 1, due, flash, false});
        }
    }

    void drive() override
    {
        if (gave_data_) {
            Burst &burst = reads_.front();
            burst.address += BYTES - burst.address % BYTES;
            if (--burst.beats == 0) {
                reads_.pop_front();
            }
            choose();
            p_.rvalid() = 0;
        }
        if (!p_.rvalid() && !reads_.empty() && is_due(reads_.front()) && goes(reads_.front())) {
            give_data(reads_.front());
        } else if (!p_.rvalid()) {
            spoil(bench_, p_.rdata(), BYTES == 8 ? ~0ull : (1ull << 8 * BYTES) - 1);
            spoil(bench_, p_.rresp(), 3);
            spoil(bench_, p_.rlast(), 1);
        }
        const bool late = bench_.disturbance.way(4) == 1; /* memory may wait until there is an address */
        p_.arready() = reads_.size() < DEPTH && (!late || waits_) && bench_.disturbance.goes();
        writes_.drive(now_);
    }

    void probe() override
    {
        Probe<Axi4Memory>(bench_, *this).look();
    }

    bool idle() const override
    {
        return reads_.empty() && writes_.idle();
    }

    bool owes() const override
    {
        return !writes_.idle();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("ARREADY", 1, p_.arready());
        visit("RVALID", 1, p_.rvalid());
        visit("RID", 1, p_.rid());
        visit("RDATA", 0xFF, p_.rdata());
        visit("RRESP", 3, p_.rresp());
        visit("RLAST", 1, p_.rlast());
        writes_.inputs(visit);
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("ARVALID", p_.arvalid());
        visit("ARADDR", p_.araddr());
        visit("ARLEN", p_.arlen());
        visit("ARID", p_.arid());
        visit("RREADY", p_.rready());
        writes_.outputs(visit);
    }

  private:
    enum { DEPTH = 8 };
    static constexpr uint64_t NOWHERE = UINT64_MAX;

    struct Burst {
        uint32_t id, address, beats;
        uint64_t due;
        bool flash, begun;
    };

    bool goes(const Burst &burst)
    {
        return bench_.takes(true, &reads_, burst.address, BYTES, burst.beats == 1);
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
        p_.rresp() = good ? 0 : bench_.refusal();
        p_.rlast() = burst.beats == 1;
        p_.rvalid() = 1;
    }

    /* With a seed the next beat may be of any burst that is the first of its id. */
    void choose()
    {
        if (!bench_.disturbance.wanted() || reads_.size() < 2) {
            return;
        }
        const size_t wanted = bench_.disturbance.way(static_cast<uint32_t>(reads_.size()));
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
    Axi4Writes<Ports, BYTES> writes_;
    Channel ar_;
    uint64_t now_ = 0;
    uint64_t behind_ = NOWHERE, gave_ = 0; /* the word behind the flash's last one, and when that was given */
    bool gave_data_ = false, waits_ = false;
    std::deque<Burst> reads_;
};

} // namespace uaccel_rtl

#endif
