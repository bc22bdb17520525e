/* Verilated RTL as a device: a clock, a reset, adapters for the buses that it speaks, and a waveform.
 *
 * uaccel writes a C++ file for each `rtl/` folder, which says how the ports are called and puts these parts together.
 * Each cycle has two halves. In the first the clock is low: what the RTL and the adapters drive settles, and adapters see
 * which handshakes take place. In the second the clock rises, and the adapters drive what they want of the next cycle. */
#ifndef UACCEL_RTL_H
#define UACCEL_RTL_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "uaccel_device.h"

namespace uaccel_rtl {

/* What an unused port is: written to, read as 0. */
struct Unconnected {
    uint32_t value = 0;
};

/* Random and the same in every run: xorshift. Without a seed it says yes to everything. */
class Disturbance {
  public:
    void seed(uint32_t seed)
    {
        state_ = seed;
    }
    bool wanted() const
    {
        return state_ != 0;
    }
    uint32_t next()
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }
    /* From now on nothing goes on. */
    void hold(bool held)
    {
        held_ = held;
    }
    /* Whether something goes on in this cycle. */
    bool goes()
    {
        return !held_ && (state_ == 0 || (next() & 0x300u) != 0);
    }
    /* Further cycles that something takes: few, and now and then many. */
    uint32_t wait()
    {
        const uint32_t drawn = state_ == 0 ? 0 : next() >> 8;
        return (drawn & 0x1F00u) == 0x1F00u ? drawn & 255u : drawn & 15u;
    }
    /* One of so many ways to do something; without a seed always the first. */
    uint32_t way(uint32_t ways)
    {
        return state_ == 0 ? 0 : (next() >> 8) % ways;
    }

  private:
    uint32_t state_ = 0;
    bool held_ = false;
};

/* What adapters ask of their device. */
class Bench {
  public:
    virtual ~Bench() = default;
    virtual void cycle_begins() = 0; /* the first half */
    virtual void cycle_ends() = 0;   /* the second */
    virtual bool load(uint32_t address, void *to, uint32_t bytes) = 0;
    virtual bool store(uint32_t address, const void *from, uint32_t bytes) = 0;
    /* Whether memory is shared: then a beat goes where it is granted, which `master` asks for in each cycle. */
    virtual bool shares() const = 0;
    virtual bool granted(const void *master, uint32_t address, uint32_t bytes, bool last) = 0;
    /* The same of a beat that the RTL offers, if it does. */
    bool takes(bool offered, const void *master, uint32_t address, uint32_t bytes, bool last)
    {
        return disturbance.goes() && (!shares() || (offered && granted(master, address, bytes, last)));
    }
    /* What AXI answers where memory refuses: SLVERR, or DECERR where there is none; with a seed either. */
    virtual uint32_t refusal() = 0;
    /* Whether the RTL is in reset, and whether it has been for long enough. */
    virtual bool resets() const = 0;
    virtual bool has_reset() const = 0;
    /* Lets what was changed of the RTL's inputs settle; the clock stays. */
    virtual void settle() = 0;
    virtual uint64_t now() const = 0;
    /* Whether device constants lie there. */
    virtual bool constant(uint32_t address) const = 0;
    /* The RTL does what the bus does not allow: said on stderr, and from now on all registers read all ones. */
    virtual void violates(const char *what) = 0;
    Disturbance disturbance;
};

/* Where the RTL reads and writes memory. */
class Memory {
  public:
    virtual ~Memory() = default;
    virtual void reset() = 0;
    virtual void sample() = 0; /* at the end of the first half */
    virtual void drive() = 0;  /* after the second */
    virtual void probe() {}    /* in the first half: whether outputs follow inputs that must not */
    virtual bool idle() const = 0;
    /* Whether something was written that memory has not answered to. */
    virtual bool owes() const
    {
        return false;
    }
};

/* Where registers are accessed; false where the RTL answers with an error or not at all. */
class Registers {
  public:
    virtual ~Registers() = default;
    virtual void reset() = 0;
    virtual bool read(uint32_t offset, uint32_t &value) = 0;
    virtual bool write(uint32_t offset, uint32_t value) = 0;
    virtual void sample() {} /* as of memory, for registers behind which something goes on by itself */
    virtual void drive() {}
    virtual void probe() {}
    virtual bool idle() const
    {
        return true;
    }
};

constexpr uint32_t PATIENCE = 100000; /* cycles that an access of a register may take */

/* Registers behind a bus on which one access is under way at a time, with the bench as the master. */
class BusRegisters : public Registers {
  public:
    explicit BusRegisters(Bench &bench) : bench_(bench) {}

    bool write(uint32_t offset, uint32_t value) override
    {
        return access(offset, true, value);
    }

    bool read(uint32_t offset, uint32_t &value) override
    {
        return access(offset, false, value);
    }

  protected:
    struct Answer {
        bool there, good;
        uint32_t data;
    };
    virtual void begin(uint32_t offset, bool write, uint32_t value) = 0;
    virtual Answer answer() = 0; /* of this cycle, at the end of its first half */
    Bench &bench_;
    uint32_t used_ = 0; /* bits of offsets that there are */

  private:
    bool access(uint32_t offset, bool write, uint32_t &value)
    {
        used_ |= offset;
        for (uint32_t i = bench_.disturbance.way(4); i > 0; --i) {
            bench_.cycle_begins();
            bench_.cycle_ends();
        }
        begin(offset, write, value);
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            bench_.cycle_begins();
            const Answer got = answer();
            bench_.cycle_ends();
            if (got.there) {
                reset();
                value = write ? value : got.data;
                return got.good;
            }
        }
        bench_.violates("an access of a register never ends");
        return false;
    }
};

/* What a bus carries where nothing is valid: with a seed anything, else what it is now. `bits` are those that there
 * are. */
template <class Port> void spoil(Bench &bench, Port &port, uint64_t bits)
{
    if (bench.disturbance.wanted()) {
        port = static_cast<Port>(bench.disturbance.next() * 0x100000001ull & bits);
    }
}

/* Bytes of memory that lie in one beat of a bus. What lies beyond the memory that devices reach reads as 0, unless all
 * does. */
inline bool load_beat(Bench &bench, uint32_t address, uint8_t *to, uint32_t bytes)
{
    if (bench.load(address, to, bytes)) {
        return true;
    }
    bool some = false;
    for (uint32_t i = 0; i < bytes; ++i) {
        const bool there = bench.load(address + i, to + i, 1);
        to[i] = there ? to[i] : 0;
        some = some || there;
    }
    return some;
}

/* Those bytes of a beat that the strobes say, in as few pieces as can be. */
inline bool store_beat(Bench &bench, uint32_t address, const uint8_t *from, uint64_t strobes, uint32_t bytes)
{
    bool good = true;
    for (uint32_t i = 0; i < bytes;) {
        uint32_t end = i;
        while (end < bytes && (strobes >> end & 1u) != 0) {
            ++end;
        }
        if (end > i) {
            good = bench.store(address + i, from + i, end - i) && good;
        }
        i = end > i ? end : i + 1;
    }
    return good;
}

template <class Data> inline Data from_bytes(const uint8_t *bytes, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; ++i) {
        value |= static_cast<uint64_t>(bytes[i]) << 8 * i;
    }
    return static_cast<Data>(value);
}

inline void to_bytes(uint64_t value, uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<uint8_t>(value >> 8 * i);
    }
}

} // namespace uaccel_rtl

#endif
