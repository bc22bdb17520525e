/* Wishbone B4, classic cycles: registers with the bench as the master, memory with the RTL as the master. With a seed the
 * bus carries what is meant for others where `cyc` is 0. */
#ifndef UACCEL_RTL_WISHBONE_H
#define UACCEL_RTL_WISHBONE_H

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

/* SHIFT: 2 where addresses count words of 32 bits, else 0. */
template <class Ports, uint32_t SHIFT> class WishboneRegisters : public BusRegisters {
  public:
    WishboneRegisters(Bench &bench, Ports ports) : BusRegisters(bench), p_(ports) {}

    void reset() override
    {
        p_.cyc() = 0;
        p_.stb() = 0;
        asked_ = false;
    }

    /* A registered answer may end a cycle behind what it answers to. */
    void sample() override
    {
        const bool asks = p_.cyc() && p_.stb();
        if ((p_.ack() || p_.err()) && !asks && !asked_ && !bench_.resets()) {
            bench_.violates("ack or err answers to nothing");
        }
        if (p_.ack() && p_.err() && asks) {
            bench_.violates("ack and err come together");
        }
        asked_ = asks;
    }

    void drive() override
    {
        if (!p_.cyc()) {
            spoil(bench_, p_.stb(), 1);
            spoil(bench_, p_.we(), 1);
            spoil(bench_, p_.adr(), used_ >> SHIFT);
            spoil(bench_, p_.dat_w(), 3);
        }
    }

  private:
    void begin(uint32_t offset, bool write, uint32_t value) override
    {
        p_.adr() = static_cast<decltype(p_.adr() + 0)>(offset >> SHIFT);
        p_.dat_w() = value;
        p_.we() = write;
        p_.sel() = 15;
        p_.cyc() = 1;
        p_.stb() = 1;
    }

    Answer answer() override
    {
        return {p_.ack() || p_.err(), !p_.err(), static_cast<uint32_t>(p_.dat_r())};
    }

    Ports p_;
    bool asked_ = false;
};

/* A beat is acknowledged LATENCY cycles after it was asked for, at least one. */
template <class Ports, uint32_t BYTES, uint32_t LATENCY, uint32_t SHIFT> class WishboneMemory : public Memory {
  public:
    WishboneMemory(Bench &bench, Ports ports) : bench_(bench), p_(ports), request_(bench, "stb") {}

    void reset() override
    {
        p_.ack() = 0;
        p_.err() = 0;
        waited_ = 0;
        asks_ = false;
        request_.reset();
    }

    void sample() override
    {
        const uint64_t given = p_.we() ? static_cast<uint64_t>(p_.dat_w()) & lanes(p_.sel()) : 0;
        request_.sample(p_.cyc() && p_.stb(), p_.ack() || p_.err(), {p_.adr(), p_.we(), p_.sel(), given});
        if (p_.stb() && !p_.cyc() && !bench_.resets()) {
            bench_.violates("stb is 1 without cyc");
        }
        asks_ = p_.cyc() && p_.stb() && !p_.ack() && !p_.err();
    }

    void drive() override
    {
        p_.ack() = 0;
        p_.err() = 0;
        waited_ = asks_ ? waited_ + 1 : 0;
        const uint32_t address = static_cast<uint32_t>(p_.adr()) << SHIFT;
        spoil(bench_, p_.dat_r(), 0xFF);
        if (!asks_ || waited_ < (LATENCY < 1 ? 1 : LATENCY) || !bench_.takes(true, this, address, BYTES, true)) {
            return;
        }
        waited_ = 0;
        uint8_t bytes[BYTES];
        bool good;
        if (p_.we()) {
            to_bytes(p_.dat_w(), bytes, BYTES);
            good = store_beat(bench_, address - address % BYTES, bytes, p_.sel(), BYTES);
        } else {
            good = load_beat(bench_, address - address % BYTES, bytes, BYTES);
            p_.dat_r() = from_bytes<decltype(p_.dat_r() + 0)>(bytes, BYTES);
        }
        p_.ack() = good;
        p_.err() = !good;
    }

    bool idle() const override
    {
        return !asks_;
    }

  private:
    Bench &bench_;
    Ports p_;
    Channel request_;
    bool asks_ = false;
    uint32_t waited_ = 0;
};

} // namespace uaccel_rtl

#endif
