/* Registers behind AXI4-Lite: the bench is the master. Address and data of a write are offered together. */
#ifndef UACCEL_RTL_AXI4_LITE_H
#define UACCEL_RTL_AXI4_LITE_H

#include "uaccel_rtl.h"

namespace uaccel_rtl {

template <class Ports> class Axi4LiteRegisters : public Registers {
  public:
    Axi4LiteRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports) {}

    void reset() override
    {
        p_.awvalid() = 0;
        p_.wvalid() = 0;
        p_.bready() = 0;
        p_.arvalid() = 0;
        p_.rready() = 0;
    }

    bool write(uint32_t offset, uint32_t value) override
    {
        p_.awaddr() = static_cast<decltype(p_.awaddr() + 0)>(offset);
        p_.awprot() = 0;
        p_.awvalid() = 1;
        p_.wdata() = value;
        p_.wstrb() = 15;
        p_.wvalid() = 1;
        p_.bready() = 1;
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            bench_.cycle_begins();
            const bool address = p_.awvalid() && p_.awready();
            const bool data = p_.wvalid() && p_.wready();
            const bool answer = p_.bvalid();
            const bool good = p_.bresp() == 0;
            bench_.cycle_ends();
            p_.awvalid() = p_.awvalid() && !address;
            p_.wvalid() = p_.wvalid() && !data;
            if (answer) {
                reset();
                return good;
            }
        }
        bench_.violates("a write to a register is never answered");
        return false;
    }

    bool read(uint32_t offset, uint32_t &value) override
    {
        p_.araddr() = static_cast<decltype(p_.araddr() + 0)>(offset);
        p_.arprot() = 0;
        p_.arvalid() = 1;
        p_.rready() = 1;
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            bench_.cycle_begins();
            const bool address = p_.arvalid() && p_.arready();
            const bool answer = p_.rvalid();
            const bool good = p_.rresp() == 0;
            const uint32_t data = p_.rdata();
            bench_.cycle_ends();
            p_.arvalid() = p_.arvalid() && !address;
            if (answer) {
                reset();
                value = data;
                return good;
            }
        }
        bench_.violates("a read of a register is never answered");
        return false;
    }

  private:
    Bench &bench_;
    Ports p_;
};

} // namespace uaccel_rtl

#endif
