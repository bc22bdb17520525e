/* Registers behind APB 3: the bench is the master. With a seed the bus carries what is meant for others while the RTL is
 * not selected. */
#ifndef UACCEL_RTL_APB_H
#define UACCEL_RTL_APB_H

#include "uaccel_rtl.h"

namespace uaccel_rtl {

template <class Ports> class ApbRegisters : public BusRegisters {
  public:
    ApbRegisters(Bench &bench, Ports ports) : BusRegisters(bench), p_(ports) {}

    void reset() override
    {
        p_.psel() = 0;
        p_.penable() = 0;
    }

    void drive() override
    {
        if (!p_.psel()) {
            spoil(bench_, p_.penable(), 1);
            spoil(bench_, p_.pwrite(), 1);
            spoil(bench_, p_.paddr(), used_);
            spoil(bench_, p_.pwdata(), 3);
        }
    }

  private:
    void begin(uint32_t offset, bool write, uint32_t value) override
    {
        p_.paddr() = static_cast<decltype(p_.paddr() + 0)>(offset);
        p_.pwdata() = value;
        p_.pwrite() = write;
        p_.psel() = 1;
        p_.penable() = 0;
        bench_.cycle_begins();
        bench_.cycle_ends();
        p_.penable() = 1;
    }

    Answer answer() override
    {
        return {p_.pready() != 0, !p_.pslverr(), static_cast<uint32_t>(p_.prdata())};
    }

    Ports p_;
};

} // namespace uaccel_rtl

#endif
