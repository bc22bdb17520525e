/* Registers behind APB 3: the bench is the master. */
#ifndef UACCEL_RTL_APB_H
#define UACCEL_RTL_APB_H

#include "uaccel_rtl.h"

namespace uaccel_rtl {

template <class Ports> class ApbRegisters : public Registers {
  public:
    ApbRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports) {}

    void reset() override
    {
        p_.psel() = 0;
        p_.penable() = 0;
    }

    bool write(uint32_t offset, uint32_t value) override
    {
        p_.pwdata() = value;
        return access(offset, true, value);
    }

    bool read(uint32_t offset, uint32_t &value) override
    {
        return access(offset, false, value);
    }

  private:
    bool access(uint32_t offset, bool write, uint32_t &value)
    {
        p_.paddr() = static_cast<decltype(p_.paddr() + 0)>(offset);
        p_.pwrite() = write;
        p_.psel() = 1;
        bench_.cycle_begins();
        bench_.cycle_ends();
        p_.penable() = 1;
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            bench_.cycle_begins();
            const bool ready = p_.pready();
            const bool good = !p_.pslverr();
            const uint32_t data = p_.prdata();
            bench_.cycle_ends();
            if (ready) {
                reset();
                value = write ? value : data;
                return good;
            }
        }
        bench_.violates("an access of a register never ends");
        return false;
    }

    Bench &bench_;
    Ports p_;
};

} // namespace uaccel_rtl

#endif
