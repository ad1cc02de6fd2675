# SPDX-License-Identifier: Apache-2.0

"""Options of how the network is divided: ``[fairness_network]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_network',
    title='Network of a node',
    help='Where and how the traffic of VMs is divided.',
)

OPTS = [
    cfg.StrOpt(
        'layout',
        default='auto',
        choices=[
            ('auto', 'the one that fits the host'),
            ('uplink', 'at the physical port of the bridge of the VMs'),
            ('tap', 'at the tap of each VM'),
            ('off', 'traffic of VMs is measured, but not steered'),
        ],
        advanced=True,
        help="""
Where traffic of VMs is steered. ``uplink`` sees all traffic of the node, so
the host's own has its part; it leaves traffic between VMs of the node alone.
``tap`` works before tunnels and with Open vSwitch; it does not see the host's
own traffic, and counts traffic between VMs of the node, too. ``auto`` takes
``uplink`` where the Linux bridges together have exactly one physical port, and
``tap`` otherwise. Set it if that is wrong for this host. ``tap`` together with
the option ``uplink`` divides what VMs send at the uplink and what they receive
at their taps; use it for Open vSwitch's datapath in user space without
tunnels. A queueing discipline that another program made is never replaced.
""",
    ),
    cfg.StrOpt(
        'uplink',
        default='',
        help="""
Interface through which VMs reach the network, such as ``eth1`` or ``bond0``.
Its link speed is the bandwidth of the node, unless ``[fairness_node]
network_bandwidth`` is set. Empty: the physical port of the bridge, and the
link speed of the default route. Set it where bridges have several ports, or
where the port is not physical. With ``layout = auto`` it means ``uplink``;
with ``layout = tap`` what VMs send is divided there.
""",
    ),
    cfg.FloatOpt(
        'host_rate',
        min=0.0,
        advanced=True,
        help="""
Bytes per second, in each direction, that the host's own traffic gets in any
case: storage, migrations, management. At most half of the link counts. VMs use
the part that the host leaves. Not set: 5 percent of the link. Raise it if
migrations or storage are slow while VMs are busy. With ``layout = tap`` the
host's traffic is not seen: this rate is kept free for it, and nothing if it is
not set.
""",
    ),
]
