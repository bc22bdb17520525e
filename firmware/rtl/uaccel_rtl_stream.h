/* AXI-Stream through a DMA: the RTL has a stream in and a stream out, and the bench is the DMA that carries memory to the
 * one and the other to memory. All registers of the device are the DMA's. */
#ifndef UACCEL_RTL_STREAM_H
#define UACCEL_RTL_STREAM_H

#include "uaccel_rtl.h"

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
    StreamRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports) {}

    void reset() override
    {
        status_ = source_ = left_ = target_ = room_ = received_ = cycles_ = 0;
        offers_ = false;
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
        const bool offered = offers_;
        const uint64_t before = data_;
        const bool valid = p_.m_axis_tvalid() != 0;
        data_ = p_.m_axis_tdata();
        if (offered && (!valid || data_ != before)) {
            bench_.violates("a beat of the stream changes before it was taken");
        }
        offers_ = valid && !p_.m_axis_tready();
        if (valid && p_.m_axis_tready()) {
            take(p_.m_axis_tlast() != 0);
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
        }
        p_.m_axis_tready() = (status_ & DMA_RECEIVES) != 0 &&
                             bench_.takes(p_.m_axis_tvalid() != 0, &target_, target_ + received_, BYTES, true);
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

    void take(bool last)
    {
        uint8_t bytes[BYTES];
        uint32_t count = 0;
        while (count < BYTES && (static_cast<uint64_t>(p_.m_axis_tkeep()) >> count & 1u) != 0) {
            ++count;
        }
        to_bytes(data_, bytes, BYTES);
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
    uint64_t data_ = 0;
    bool more_ = false, sent_ = false, offers_ = false;
};

} // namespace uaccel_rtl

#endif
