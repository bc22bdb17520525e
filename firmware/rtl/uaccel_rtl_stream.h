/* AXI-Stream through a DMA: the RTL has a stream in and a stream out, and the bench is the DMA that carries memory to the
 * one and the other to memory. All registers of the device are the DMA's. */
#ifndef UACCEL_RTL_STREAM_H
#define UACCEL_RTL_STREAM_H

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

enum : uint32_t {
    DMA_IDENTITY = 0x00, /* DMA_NAME */
    DMA_VERSION = 0x04,  /* 1 */
    DMA_STATUS = 0x08,   /* what goes on; a write ends it, and clears the error */
    DMA_SOURCE = 0x0C,   /* the address of what is sent */
    DMA_SEND = 0x10,     /* so many bytes begin to go; with DMA_MORE the packet goes on behind them */
    DMA_TARGET = 0x14,   /* the address of what comes */
    DMA_RECEIVE = 0x18,  /* room for so many bytes: a packet may come */
    DMA_RECEIVED = 0x1C, /* bytes of the last packet */
    DMA_CYCLES = 0x20    /* that transfers took since there was room for it */
};
enum : uint32_t { DMA_NAME = 0x414D4453u, DMA_MORE = 1u << 31 };
enum : uint32_t { DMA_SENDS = 1, DMA_RECEIVES = 2, DMA_REFUSED = 4, DMA_TOO_LONG = 8 };

template <class Ports, uint32_t BYTES> class StreamRegisters : public Registers {
  public:
    StreamRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports), out_(bench, "TVALID") {}

    void reset() override
    {
        status_ = source_ = left_ = target_ = room_ = received_ = cycles_ = 0;
        p_.s_axis_tvalid() = 0;
        p_.m_axis_tready() = 0;
    }

    bool read(uint32_t offset, uint32_t &value) override
    {
        value = offset == DMA_IDENTITY   ? DMA_NAME
                : offset == DMA_VERSION  ? 1u
                : offset == DMA_STATUS   ? status_
                : offset == DMA_SOURCE   ? source_
                : offset == DMA_TARGET   ? target_
                : offset == DMA_RECEIVED ? received_
                : offset == DMA_CYCLES   ? cycles_
                                         : 0u;
        return true;
    }

    bool write(uint32_t offset, uint32_t value) override
    {
        if (offset == DMA_STATUS) {
            reset();
        } else if (offset == DMA_SOURCE) {
            source_ = value;
        } else if (offset == DMA_TARGET) {
            target_ = value;
        } else if (offset == DMA_SEND && (value & ~DMA_MORE) != 0) {
            left_ = value & ~DMA_MORE;
            more_ = (value & DMA_MORE) != 0;
            status_ |= DMA_SENDS;
        } else if (offset == DMA_RECEIVE) {
            room_ = value;
            received_ = cycles_ = 0;
            status_ |= DMA_RECEIVES;
        }
        return true;
    }

    void sample() override
    {
        cycles_ += idle() ? 0 : 1;
        sent_ = p_.s_axis_tvalid() && p_.s_axis_tready();
        const uint64_t kept = p_.m_axis_tkeep() & ((1ull << BYTES) - 1);
        out_.sample(p_.m_axis_tvalid(), p_.m_axis_tready(), {p_.m_axis_tdata() & lanes(kept), kept, p_.m_axis_tlast()});
        if (p_.m_axis_tvalid() && p_.m_axis_tready()) {
            take(kept, p_.m_axis_tlast() != 0);
        }
    }

    void drive() override
    {
        if (sent_) {
            p_.s_axis_tvalid() = 0;
            sent_ = false;
            status_ &= left_ == 0 ? ~DMA_SENDS : ~0u;
        }
        if (!p_.s_axis_tvalid() && (status_ & DMA_SENDS) != 0 && bench_.takes(true, &source_, source_, BYTES, true)) {
            give();
        } else if (!p_.s_axis_tvalid()) {
            spoil(bench_, p_.s_axis_tdata(), 0xFF);
            spoil(bench_, p_.s_axis_tlast(), 1);
        }
        p_.m_axis_tready() = (status_ & DMA_RECEIVES) != 0 &&
                             bench_.takes(p_.m_axis_tvalid() != 0, &target_, target_ + received_, BYTES, true);
    }

    void probe() override
    {
        Probe<StreamRegisters>(bench_, *this).look();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("TREADY", 1, p_.m_axis_tready());
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("TVALID", p_.m_axis_tvalid());
        visit("TDATA", p_.m_axis_tdata());
        visit("TLAST", p_.m_axis_tlast());
    }

    bool idle() const override
    {
        return (status_ & (DMA_SENDS | DMA_RECEIVES)) == 0;
    }

  private:
    void give()
    {
        uint8_t bytes[BYTES] = {};
        const uint32_t count = left_ < BYTES ? left_ : BYTES;
        if (!bench_.load(source_, bytes, count)) {
            status_ = DMA_REFUSED;
            return;
        }
        source_ += count;
        left_ -= count;
        p_.s_axis_tdata() = from_bytes<decltype(p_.s_axis_tdata() + 0)>(bytes, BYTES);
        p_.s_axis_tkeep() = static_cast<decltype(p_.s_axis_tkeep() + 0)>((1u << count) - 1u);
        p_.s_axis_tlast() = left_ == 0 && !more_;
        p_.s_axis_tvalid() = 1;
    }

    void take(uint64_t kept, bool last)
    {
        uint8_t bytes[BYTES];
        uint32_t count = 0;
        while (count < BYTES && (kept >> count & 1u) != 0) {
            ++count;
        }
        if (kept >> count != 0) {
            bench_.violates("a beat of the stream has gaps, which the DMA does not close");
        }
        to_bytes(p_.m_axis_tdata(), bytes, BYTES);
        if (received_ + count > room_) {
            status_ = (status_ | DMA_TOO_LONG) & ~DMA_RECEIVES;
        } else if (!bench_.store(target_ + received_, bytes, count)) {
            status_ = DMA_REFUSED;
        } else {
            received_ += count;
            status_ &= last ? ~DMA_RECEIVES : ~0u;
        }
    }

    Bench &bench_;
    Ports p_;
    uint32_t status_ = 0, source_ = 0, left_ = 0, target_ = 0, room_ = 0, received_ = 0, cycles_ = 0;
    Channel out_;
    bool more_ = false, sent_ = false;
};

} // namespace uaccel_rtl

#endif
