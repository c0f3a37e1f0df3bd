"""Motion clips: the record and its npz, readers of other dialects, operations, a library of many, and generators.

``clip`` the record; ``dialects`` what files say, ``convert`` that onto a robot; ``operations`` on clips; ``library``
draws from hours of them; ``reach`` and ``trot`` make the built-in demonstrations.
"""

from consmimic.motions.clip import Clip

__all__ = ["Clip"]
