"""From a skeleton or another robot to ours, through named points of base, feet and hands.

A recording that a dialect has read becomes a :class:`SourceMotion` (`reading`; `humans`, `quadrupeds`; clips of ours by
`robots`); its loop is unrolled and its jumps are healed (`seams`), it comes to the clip's frame rate (`sampling`), its
ground is levelled and its stances are found (`contacts`); scaled to the robot, feet that stand keep their place
(`targets`, `footsteps`, `soles`); mink finds the joint angles (`ik`); `report` says what had to be bent. `pipeline` is
all of it in order.
"""

from consmimic.motions.retarget.correspondence import Correspondence, correspondence_of
from consmimic.motions.retarget.pipeline import Retargeted, Retargeting, retarget
from consmimic.motions.retarget.reading import READERS, read_source
from consmimic.motions.retarget.report import RetargetReport
from consmimic.motions.retarget.robots import from_robot
from consmimic.motions.retarget.source import SourceMotion

__all__ = [
    "READERS",
    "Correspondence",
    "RetargetReport",
    "Retargeted",
    "Retargeting",
    "SourceMotion",
    "correspondence_of",
    "from_robot",
    "read_source",
    "retarget",
]
